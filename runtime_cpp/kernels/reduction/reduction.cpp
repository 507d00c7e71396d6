// Sums, products, norms, standard deviations and logical reductions over any set of dimensions.
#include "reduce.h"

#include <diopi/diopirt.h>

#include "copy/common_dtype.h"
#include "copy/copy.h"
#include "core/scalar.h"
#include "math/math.h"
#include "normalization/normalization.h"
#include "reductions.h"
#include "vector_norm.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

template <class Access>
struct StdReduction : MomentsReduction<Access, ReductionSpace<1>> {
    TensorView out;
    double correction;

    DIOPI_HD void finish(int64_t i, const Moments& found) const {
        const double freedom = found.count - correction;
        const double ratio = found.count / (freedom > 0.0 ? freedom : 0.0);
        store_as(out, this->space.outer.offset(i), diopi::math::sqrt(found.variance * ratio));
    }
};

diopiError_t sum(Context ctx, Tensor out, ConstTensor input, Sizes dim, bool mean) {
    return over_dims(out, input, dim,
                     [&](const ReducedOperands& of) { reduce_sum(ctx, of.out, of.input, of.dims, mean); });
}

diopiError_t truth(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool all) {
    return over_dims(out, input, dim,
                     [&](const ReducedOperands& of) { reduce_truth(ctx, of.out, of.input, of.dims, all); });
}

diopiError_t norm(Context ctx, Tensor out, ConstTensor input, const diopiScalar_t* p, Sizes dim) {
    return over_dims(out, input, dim, [&](const ReducedOperands& of) {
        diopi::kernels::norm(ctx, of.out, of.input, scalar_or<double>(p, 2.0), of.dims);
    });
}

}  // namespace

diopiError_t diopiSum(Context ctx, Tensor out, ConstTensor input, Sizes dim) {
    return sum(ctx, out, input, dim, false);
}

diopiError_t diopiMean(Context ctx, Tensor out, ConstTensor input, Sizes dim) {
    return sum(ctx, out, input, dim, true);
}

diopiError_t diopiProd(Context ctx, Tensor out, ConstTensor input, const int64_t* dim) {
    return over_dims(out, input, dim, [&](const ReducedOperands& of) {
        // converted first; integers multiply in int64 anyway
        const bool kept = !is_float_dtype(of.input.dtype) && of.out.dtype == diopi_dtype_int64;
        const TensorView factors = kept ? of.input : converted(ctx, of.input, of.out.dtype);
        dispatch_values<Any>(factors, [&](auto values) {
            using T = ElementOf<decltype(values)>;
            using Forms = std::conditional_t<is_float<T>, DenseFold, UsualFold<T>>;
            launch_fold<Forms>(ctx, of.out, factors, values, of.dims, ProductFold<T>{});
        });
    });
}

diopiError_t diopiAny(Context ctx, Tensor out, ConstTensor input, const int64_t* dim) {
    return truth(ctx, out, input, dim, false);
}

diopiError_t diopiAll(Context ctx, Tensor out, ConstTensor input, const int64_t* dim) {
    return truth(ctx, out, input, dim, true);
}

diopiError_t diopiStd(Context ctx, Tensor out, ConstTensor input, Sizes dim, const diopiScalar_t* correction) {
    return over_dims(out, input, dim, [&](const ReducedOperands& of) {
        const double lost = scalar_or<double>(correction, 1.0);
        with_common_dtype(ctx, {of.input}, 0, [&](const TensorView(&read)[1]) {
            const ReductionSpace<1> space = reduction_space(of.out, read[0], of.dims);
            dispatch_typed(read, [&](auto access) {
                run_reduction(ctx, StdReduction<decltype(access)>{{space, read[0]}, of.out, lost},
                              StdReduction<TypedAccess<float>>{{space, read[0]}, of.out, lost});
            });
        });
    });
}

diopiError_t diopiNorm(Context ctx, Tensor out, ConstTensor input, const diopiScalar_t* p, Sizes dim) {
    return norm(ctx, out, input, p, dim);
}

diopiError_t diopiLinalgVecNorm(Context ctx, Tensor out, ConstTensor input, diopiScalar_t* ord, Sizes dim, bool) {
    return norm(ctx, out, input, ord, dim);
}

}  // namespace impl::portable
