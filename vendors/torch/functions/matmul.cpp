// The gradients of products, for which ATen has no operator: PyTorch derives them. And linear: of half floats that are not
// row-major ATen rounds the product before it adds the bias.
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <diopi/functions.h>

#include "aten/call.h"
#include "aten/gradients.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiLinear(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias) {
    return guarded([&] { write(out, at::linear(tensor(input).contiguous(), tensor(weight), maybe_tensor(bias))); });
}

diopiError_t diopiMatmulBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_other,
                                 diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t input,
                                 diopiConstTensorHandle_t other) {
    return guarded([&] {
        const Tensors grads = gradients({tensor(input), tensor(other)}, {tensor(grad_out)},
                                        [](const Tensors& in) { return Tensors{at::matmul(in[0], in[1])}; });
        write(grad_input, grads[0]);
        write(grad_other, grads[1]);
    });
}

diopiError_t diopiLinearBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight,
                                 diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_output,
                                 diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight) {
    return guarded([&] {
        const at::Tensor grad = tensor(grad_output);
        const Tensors grads = gradients({tensor(input), tensor(weight)}, {grad},
                                        [](const Tensors& in) { return Tensors{at::linear(in[0], in[1])}; });
        write(grad_input, grads[0]);
        write(grad_weight, grads[1]);
        if (grad_bias != nullptr) write(grad_bias, grad.sum_to_size(tensor(grad_bias).sizes()));
    });
}

}  // namespace impl::torch
