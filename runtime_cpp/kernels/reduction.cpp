// Sums, products, norms, standard deviations and logical reductions over any set of dimensions.
#include "core/reduce.h"

#include <diopi/diopirt.h>

#include <limits>

#include "core/math.h"
#include "core/normalization.h"
#include "core/scalar.h"
#include "core/unit.h"
#include "core/vector_norm.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

template <class T>
struct StdReduction : MomentsReduction<TypedAccess<T>, ReductionSpace<1>> {
    TensorView out;
    double correction;

    DIOPI_HD void finish(int64_t i, const Moments& found) const {
        const double freedom = found.count - correction;
        const double ratio = found.count / (freedom > 0.0 ? freedom : 0.0);
        store_as(out, this->space.outer.offset(i), diopi::math::sqrt(found.variance * ratio));
    }
};

// Sums and means of floats differ in what they make of a sum only.
template <class T>
struct FloatSumFold : SumFold<T> {
    bool mean;
    DIOPI_HD double finish(double sum, int64_t count) const { return mean ? sum / static_cast<double>(count) : sum; }
};

diopiError_t sum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t dim,
                 bool mean) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        const DimSet dims = dim_set(dim, x.ndim);
        dispatch<Any>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            if constexpr (is_float<T>) {
                launch_fold<T>(ctx, y, x, dims, FloatSumFold<T>{{}, mean});
            } else if (mean) {
                launch_fold<T>(ctx, y, x, dims, MeanFold<T>{});
            } else {
                launch_fold<T>(ctx, y, x, dims, SumFold<T>{});
            }
        });
    });
}

constexpr FoldForms kTruthForms{kLanes, kFewLanes, true};

// Whether any or all of the elements are true.
diopiError_t truth(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                   const int64_t* dim, bool all) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        if (!is_in<Any>(x.dtype)) fail_dtype(x.dtype);
        dispatch_unit(x.dtype, [&](auto unit) {
            using U = typename decltype(unit)::plain;
            const U every = std::numeric_limits<U>::max();
            const U mask = is_float_dtype(x.dtype) ? every >> 1 : every;
            launch_fold<U, kTruthForms>(ctx, y, x, dim_set(dim, x.ndim), TruthFold<U>{mask, all});
        });
    });
}

}  // namespace

diopiError_t diopiSum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiSize_t dim) {
    return sum(ctx, out, input, dim, false);
}

diopiError_t diopiMean(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       diopiSize_t dim) {
    return sum(ctx, out, input, dim, true);
}

diopiError_t diopiProd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const int64_t* dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        dispatch<Any>(x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            launch_fold<T>(ctx, y, x, dim_set(dim, x.ndim), ProductFold<T>{});
        });
    });
}

diopiError_t diopiAny(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return truth(ctx, out, input, dim, false);
}

diopiError_t diopiAll(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return truth(ctx, out, input, dim, true);
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

}  // namespace impl::portable
