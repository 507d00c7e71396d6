#include "vector_norm.h"

namespace diopi::kernels {

void norm(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, double p, DimSet dims) {
    dispatch<Float>(input.dtype, [&](auto type) {
        launch_fold<typename decltype(type)::type>(ctx, out, input, dims, norm_fold(p));
    });
}

}  // namespace diopi::kernels
