// Maximum pooling with windows that slide.
#include <diopi/diopirt.h>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

// The functions of one rank.
#define DIOPI_MAX_POOL(rank)                                                                                        \
    diopiError_t diopiMaxPool##rank##d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, \
                                       Sizes padding, Sizes dilation, bool) {                                       \
        return pool_maximum(ctx, rank, out, nullptr, input, {kernel_size, stride, padding, dilation});              \
    }                                                                                                               \
    diopiError_t diopiMaxPool##rank##dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input,       \
                                                  Sizes kernel_size, Sizes stride, Sizes padding, Sizes dilation,   \
                                                  bool) {                                                           \
        return pool_maximum(ctx, rank, out, indices, input, {kernel_size, stride, padding, dilation});              \
    }                                                                                                               \
    diopiError_t diopiMaxPool##rank##dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output,             \
                                               ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,   \
                                               Sizes dilation, bool, ConstTensor indices) {                         \
        return pool_maximum_backward(ctx, rank, grad_input, grad_output, input, indices,                            \
                                     {kernel_size, stride, padding, dilation});                                     \
    }

DIOPI_MAX_POOL(1)
DIOPI_MAX_POOL(2)
DIOPI_MAX_POOL(3)

#undef DIOPI_MAX_POOL

}  // namespace impl::portable
