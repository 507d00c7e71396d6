// Pooling whose windows are chosen for the size of the output, which is therefore not read from `output_size`.
#include <diopi/diopirt.h>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

// The functions of one rank.
#define DIOPI_ADAPTIVE_POOL(rank)                                                                                     \
    diopiError_t diopiAdaptiveAvgPool##rank##d(Context ctx, Tensor out, ConstTensor input, Sizes) {                   \
        return pool_average(ctx, rank, out, input, kAdaptive);                                                        \
    }                                                                                                                 \
    diopiError_t diopiAdaptiveAvgPool##rank##dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output,       \
                                                       ConstTensor) {                                                 \
        return pool_average_backward(ctx, rank, grad_input, grad_output, kAdaptive);                                  \
    }                                                                                                                 \
    diopiError_t diopiAdaptiveMaxPool##rank##d(Context ctx, Tensor out, ConstTensor input, Sizes) {                   \
        return pool_maximum(ctx, rank, out, nullptr, input, kAdaptive);                                               \
    }                                                                                                                 \
    diopiError_t diopiAdaptiveMaxPool##rank##dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, \
                                                          Sizes) {                                                    \
        return pool_maximum(ctx, rank, out, indices, input, kAdaptive);                                               \
    }                                                                                                                 \
    diopiError_t diopiAdaptiveMaxPool##rank##dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output,       \
                                                       ConstTensor, ConstTensor indices) {                            \
        return pool_maximum_backward(ctx, rank, grad_input, grad_output, nullptr, indices, kAdaptive);                \
    }

DIOPI_ADAPTIVE_POOL(1)
DIOPI_ADAPTIVE_POOL(2)
DIOPI_ADAPTIVE_POOL(3)

#undef DIOPI_ADAPTIVE_POOL

}  // namespace impl::portable
