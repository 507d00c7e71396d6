// Sums, products, norms, standard deviations and logical reductions over any set of dimensions.
#include "core/reduce.h"

#include <diopi/diopirt.h>

#include "core/math.h"
#include "core/normalization.h"
#include "core/reductions.h"
#include "core/scalar.h"
#include "core/vector_norm.h"

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

diopiError_t sum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiSize_t dim,
                 bool mean) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_sum(ctx, required_view(out, "out"), x, dim_set(dim, x.ndim), mean);
    });
}

diopiError_t truth(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                   const int64_t* dim, bool all) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_truth(ctx, required_view(out, "out"), x, dim_set(dim, x.ndim), all);
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
            using Forms = std::conditional_t<is_float<T>, DenseFold, UsualFold<T>>;
            launch_fold<T, Forms>(ctx, y, x, dim_set(dim, x.ndim), ProductFold<T>{});
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
