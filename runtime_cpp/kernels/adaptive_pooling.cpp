// Pooling whose windows are chosen for the size of the output, which is therefore not read from `output_size`.
#include <diopi/diopirt.h>

#include "core/pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

constexpr Divisor kOwnSize{0, false};

void averaged(Context ctx, int rank, Tensor out, ConstTensor input) {
    const TensorView result = required_view(out, "out"), source = required_view(input, "input");
    pool_average(ctx, result, source, adaptive_areas(source, result, rank), kOwnSize);
}

void averaged_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output) {
    const TensorView result = required_view(grad_input, "grad_input");
    const TensorView grads = required_view(grad_output, "grad_output");
    pool_average_backward(ctx, result, grads, adaptive_areas(result, grads, rank), kOwnSize);
}

void maximum(Context ctx, int rank, Tensor out, Tensor indices, ConstTensor input) {
    const TensorView result = required_view(out, "out"), source = required_view(input, "input");
    pool_maximum(ctx, result, view(indices), source, adaptive_areas(source, result, rank));
}

void maximum_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, ConstTensor indices) {
    const TensorView result = required_view(grad_input, "grad_input");
    const TensorView grads = required_view(grad_output, "grad_output");
    pool_maximum_backward(ctx, result, grads, required_view(indices, "indices"), adaptive_areas(result, grads, rank));
}

}  // namespace

diopiError_t diopiAdaptiveAvgPool1d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { averaged(ctx, 1, out, input); });
}

diopiError_t diopiAdaptiveAvgPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return guarded([&] { averaged_backward(ctx, 1, grad_input, grad_output); });
}

diopiError_t diopiAdaptiveAvgPool2d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { averaged(ctx, 2, out, input); });
}

diopiError_t diopiAdaptiveAvgPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return guarded([&] { averaged_backward(ctx, 2, grad_input, grad_output); });
}

diopiError_t diopiAdaptiveAvgPool3d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { averaged(ctx, 3, out, input); });
}

diopiError_t diopiAdaptiveAvgPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor) {
    return guarded([&] { averaged_backward(ctx, 3, grad_input, grad_output); });
}

diopiError_t diopiAdaptiveMaxPool1d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { maximum(ctx, 1, out, nullptr, input); });
}

diopiError_t diopiAdaptiveMaxPool1dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input,
                                               diopiSize_t) {
    return guarded([&] { maximum(ctx, 1, out, indices, input); });
}

diopiError_t diopiAdaptiveMaxPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return guarded([&] { maximum_backward(ctx, 1, grad_input, grad_output, indices); });
}

diopiError_t diopiAdaptiveMaxPool2d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { maximum(ctx, 2, out, nullptr, input); });
}

diopiError_t diopiAdaptiveMaxPool2dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input,
                                               diopiSize_t) {
    return guarded([&] { maximum(ctx, 2, out, indices, input); });
}

diopiError_t diopiAdaptiveMaxPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return guarded([&] { maximum_backward(ctx, 2, grad_input, grad_output, indices); });
}

diopiError_t diopiAdaptiveMaxPool3d(Context ctx, Tensor out, ConstTensor input, diopiSize_t) {
    return guarded([&] { maximum(ctx, 3, out, nullptr, input); });
}

diopiError_t diopiAdaptiveMaxPool3dWithIndices(Context ctx, Tensor out, Tensor indices, ConstTensor input,
                                               diopiSize_t) {
    return guarded([&] { maximum(ctx, 3, out, indices, input); });
}

diopiError_t diopiAdaptiveMaxPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                            ConstTensor indices) {
    return guarded([&] { maximum_backward(ctx, 3, grad_input, grad_output, indices); });
}


}  // namespace impl::portable
