#include "vector_norm.h"

namespace diopi::kernels {

void norm(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, double p, DimSet dims) {
    dispatch<Float>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const NormFold fold = norm_fold(p);
        if (fold.kind == NormKind::square) {
            launch_fold<T, DenseFold>(ctx, out, input, dims, KindOfNormFold<Constant<NormKind::square>>{{}, p});
        } else if (fold.kind == NormKind::absolute) {
            launch_fold<T, DenseFold>(ctx, out, input, dims, KindOfNormFold<Constant<NormKind::absolute>>{{}, p});
        } else {
            launch_fold<T, ScalarFold>(ctx, out, input, dims, fold);
        }
    });
}

}  // namespace diopi::kernels
