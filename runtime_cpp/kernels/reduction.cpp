// Sums, products, norms, standard deviations and logical reductions over any set of dimensions.
#include "core/reduce.h"

#include <diopi/diopirt.h>

#include "core/lines.h"
#include "core/math.h"
#include "core/normalization.h"
#include "core/scalar.h"
#include "core/vector_norm.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Integers too have a mean, in an output that holds floats.
template <class T>
struct MeanFold {
    using State = double;
    DIOPI_HD State start() const { return 0; }
    DIOPI_HD State step(State sum, T value) const { return sum + cast<double>(value); }
    DIOPI_HD State join(State a, State b) const { return a + b; }
    DIOPI_HD double finish(State sum, int64_t count) const { return sum / static_cast<double>(count); }
};

template <class T>
struct ProductFold {
    using State = std::conditional_t<is_float<T>, double, uint64_t>;
    using Result = std::conditional_t<is_float<T>, double, int64_t>;
    DIOPI_HD State start() const { return State(1); }
    DIOPI_HD State step(State product, T value) const { return product * cast<State>(value); }
    DIOPI_HD State join(State a, State b) const { return a * b; }
    DIOPI_HD Result finish(State product, int64_t) const { return static_cast<Result>(product); }
};

template <class T>
struct AnyFold {
    using State = bool;
    DIOPI_HD State start() const { return false; }
    DIOPI_HD State step(State seen, T value) const { return seen || cast<bool>(value); }
    DIOPI_HD State join(State a, State b) const { return a || b; }
    DIOPI_HD bool finish(State seen, int64_t) const { return seen; }
};

template <class T>
struct AllFold {
    using State = bool;
    DIOPI_HD State start() const { return true; }
    DIOPI_HD State step(State held, T value) const { return held && cast<bool>(value); }
    DIOPI_HD State join(State a, State b) const { return a && b; }
    DIOPI_HD bool finish(State held, int64_t) const { return held; }
};

template <class T>
struct StdReduction : MomentsReduction<TypedAccess<T>, ReductionSpace<1>> {
    TensorView out;
    double correction;

    DIOPI_HD void finish(int64_t i, const Moments& found) const {
        const double freedom = found.count - correction;
        const double ratio = found.count / (freedom > 0.0 ? freedom : 0.0);
        store_as(out, this->space.outer.offset(i), math::sqrt(found.variance * ratio));
    }
};

template <class T>
struct CumulativeSumTask {
    Lines<2> lines;  // out, input
    TensorView out;
    const T* input;

    DIOPI_HD void operator()(int64_t i) const {
        using State = typename SumFold<T>::State;
        using Result = typename SumFold<T>::Result;
        const Offsets<2> at = lines.outer.offsets(i);
        State sum = State(0);
        for (int64_t k = 0; k < lines.count; ++k) {
            sum += cast<State>(input[at.at[1] + k * lines.strides[1]]);
            store_as(out, at.at[0] + k * lines.strides[0], static_cast<Result>(sum));
        }
    }
};

// `tensor` with the elements along `dim` from the last to the first.
TensorView reversed(TensorView tensor, int64_t dim) {
    if (tensor.ndim == 0 || tensor.numel == 0) return tensor;
    const int at = normalized_dim(dim, tensor.ndim);
    return narrowed(tensor, at, tensor.sizes[at] - 1, tensor.sizes[at], -1);
}

void cumulative_sum(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, int64_t dim) {
    require_storable(out);
    const TensorView operands[2] = {out, input};
    const Lines<2> lines = lines_along(operands, dim);
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, lines.outer.numel, CumulativeSumTask<T>{lines, out, input.as<T>()});
    });
}

// Dim: diopiSize_t or const int64_t*
template <template <class> class Fold, class Dim>
diopiError_t reduce(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, Dim dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        dispatch<Any>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            launch_fold<T>(ctx, y, x, dim_set(dim, x.ndim), Fold<T>{});
        });
    });
}

}  // namespace

diopiError_t diopiSum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiSize_t dim) {
    return reduce<SumFold>(ctx, out, input, dim);
}

diopiError_t diopiMean(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiSize_t dim) {
    return reduce<MeanFold>(ctx, out, input, dim);
}

diopiError_t diopiProd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const int64_t* dim) {
    return reduce<ProductFold>(ctx, out, input, dim);
}

diopiError_t diopiAny(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return reduce<AnyFold>(ctx, out, input, dim);
}

diopiError_t diopiAll(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return reduce<AllFold>(ctx, out, input, dim);
}

diopiError_t diopiStd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiSize_t dim, const diopiScalar_t* correction) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        dispatch<Float>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            run_reduction(ctx, StdReduction<T>{{reduction_space(y, x, dim_set(dim, x.ndim)), x},
                                               y,
                                               scalar_or<double>(correction, 1.0)});
        });
    });
}

diopiError_t diopiNorm(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const diopiScalar_t* p, diopiSize_t dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        norm(ctx, required_view(out, "out"), x, scalar_or<double>(p, 2.0), dim_set(dim, x.ndim));
    });
}

diopiError_t diopiLinalgVecNorm(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiScalar_t* ord, diopiSize_t dim, bool) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        norm(ctx, required_view(out, "out"), x, scalar_or<double>(ord, 2.0), dim_set(dim, x.ndim));
    });
}

diopiError_t diopiCumsum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         int64_t dim) {
    return guarded([&] { cumulative_sum(ctx, required_view(out, "out"), required_view(input, "input"), dim); });
}

diopiError_t diopiCumsumBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, int64_t dim) {
    return guarded([&] {
        cumulative_sum(ctx, reversed(required_view(grad_input, "grad_input"), dim),
                       reversed(required_view(grad_output, "grad_output"), dim), dim);
    });
}

}  // namespace impl::portable
