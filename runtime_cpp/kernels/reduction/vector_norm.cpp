#include "vector_norm.h"

namespace diopi::kernels {

void norm(Context ctx, const TensorView& out, const TensorView& input, double p, DimSet dims) {
    const NormFold fold = norm_fold(p);
    dispatch_values<Float>(input, [&](auto values) {
        const auto launch = [&](auto forms, const auto& known) {
            launch_fold<decltype(forms)>(ctx, out, input, values, dims, known);
        };
        if (fold.kind == NormKind::square) {
            launch(DenseFold{}, KindOfNormFold<Constant<NormKind::square>>{{}, p});
        } else if (fold.kind == NormKind::absolute) {
            launch(DenseFold{}, KindOfNormFold<Constant<NormKind::absolute>>{{}, p});
        } else {
            launch(ScalarFold{}, fold);
        }
    });
}

}  // namespace diopi::kernels
