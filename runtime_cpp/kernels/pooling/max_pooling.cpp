// Maximum pooling with windows that slide.
#include <diopi/diopirt.h>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

diopiError_t diopiMaxPool1d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            Sizes dilation, bool) {
    return pool_maximum(ctx, 1, out, nullptr, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool1dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes kernel_size,
                                       Sizes stride, Sizes padding, Sizes dilation, bool) {
    return pool_maximum(ctx, 1, out, indices, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                    Sizes kernel_size, Sizes stride, Sizes padding, Sizes dilation, bool,
                                    ConstTensor indices) {
    return pool_maximum_backward(ctx, 1, grad_input, grad_output, input, indices,
                                 {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool2d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            Sizes dilation, bool) {
    return pool_maximum(ctx, 2, out, nullptr, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool2dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes kernel_size,
                                       Sizes stride, Sizes padding, Sizes dilation, bool) {
    return pool_maximum(ctx, 2, out, indices, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                    Sizes kernel_size, Sizes stride, Sizes padding, Sizes dilation, bool,
                                    ConstTensor indices) {
    return pool_maximum_backward(ctx, 2, grad_input, grad_output, input, indices,
                                 {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool3d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            Sizes dilation, bool) {
    return pool_maximum(ctx, 3, out, nullptr, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool3dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes kernel_size,
                                       Sizes stride, Sizes padding, Sizes dilation, bool) {
    return pool_maximum(ctx, 3, out, indices, input, {kernel_size, stride, padding, dilation});
}

diopiError_t diopiMaxPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                    Sizes kernel_size, Sizes stride, Sizes padding, Sizes dilation, bool,
                                    ConstTensor indices) {
    return pool_maximum_backward(ctx, 3, grad_input, grad_output, input, indices,
                                 {kernel_size, stride, padding, dilation});
}

}  // namespace impl::portable
