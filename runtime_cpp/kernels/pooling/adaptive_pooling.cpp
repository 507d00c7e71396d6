// Pooling whose windows are chosen for the size of the output, which is therefore not read from `output_size`.
#include <diopi/diopirt.h>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

diopiError_t diopiAdaptiveAvgPool1d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_average(ctx, 1, out, input, kAdaptive);
}

diopiError_t diopiAdaptiveAvgPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return pool_average_backward(ctx, 1, grad_input, grad_output, kAdaptive);
}

diopiError_t diopiAdaptiveAvgPool2d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_average(ctx, 2, out, input, kAdaptive);
}

diopiError_t diopiAdaptiveAvgPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return pool_average_backward(ctx, 2, grad_input, grad_output, kAdaptive);
}

diopiError_t diopiAdaptiveAvgPool3d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_average(ctx, 3, out, input, kAdaptive);
}

diopiError_t diopiAdaptiveAvgPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return pool_average_backward(ctx, 3, grad_input, grad_output, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool1d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 1, out, nullptr, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool1dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 1, out, indices, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return pool_maximum_backward(ctx, 1, grad_input, grad_output, nullptr, indices, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool2d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 2, out, nullptr, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool2dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 2, out, indices, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return pool_maximum_backward(ctx, 2, grad_input, grad_output, nullptr, indices, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool3d(Context ctx, Tensor out, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 3, out, nullptr, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool3dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input, Sizes) {
    return pool_maximum(ctx, 3, out, indices, input, kAdaptive);
}

diopiError_t diopiAdaptiveMaxPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return pool_maximum_backward(ctx, 3, grad_input, grad_output, nullptr, indices, kAdaptive);
}

}  // namespace impl::portable
