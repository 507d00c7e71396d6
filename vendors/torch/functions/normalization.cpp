// Norms of groups, instances and axes, which ATen has under other arguments.
#include <ATen/TensorOperators.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <diopi/functions.h>

#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// How many elements each channel of each sample has.
int64_t plane(const at::Tensor& input) { return input.dim() > 2 ? c10::multiply_integers(input.sizes().slice(2)) : 1; }

// One value for each channel, which is dimension 1 of so many.
at::Tensor channelwise(const at::Tensor& values, int64_t dims) {
    std::vector<int64_t> shape(static_cast<size_t>(dims - 1), 1);
    shape[0] = -1;
    return values.reshape(shape);
}

at::Tensor instances_normalized(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& bias, int64_t axis,
                                double eps) {
    const auto first = static_cast<size_t>(c10::maybe_wrap_dim(axis, input.dim()));
    at::Tensor normalized = at::layer_norm(input, input.sizes().slice(first), {}, {}, eps, false);
    if (scale.defined()) normalized = normalized * channelwise(scale, input.dim());
    return bias.defined() ? normalized + channelwise(bias, input.dim()) : normalized;
}

at::Tensor unit_length(const at::Tensor& input, double p, int64_t axis, double eps) {
    return input / at::linalg_vector_norm(input, p, axis, true).clamp_min(eps);
}

}  // namespace

diopiError_t diopiGroupNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, int64_t num_groups,
                            double eps) {
    return guarded([&] {
        const at::Tensor source = wide_lines(input);
        const auto [normalized, mean, invstd] =
            at::native_group_norm(source, maybe_lines(weight), maybe_lines(bias), source.size(0), source.size(1),
                                  plane(source), num_groups, eps);
        write(out, normalized);
        write(save_mean, mean);
        write(save_invstd, invstd);
    });
}

diopiError_t diopiGroupNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t weight, diopiConstTensorHandle_t mean,
                                    diopiConstTensorHandle_t rstd, int64_t num_groups) {
    return guarded([&] {
        const at::Tensor source = wide_lines(input);
        const std::array<bool, 3> wanted{grad_input != nullptr, grad_weight != nullptr, grad_bias != nullptr};
        const auto [of_input, of_weight, of_bias] = at::native_group_norm_backward(
            wide_lines(grad_output), source, wide_lines(mean), wide_lines(rstd), maybe_lines(weight), source.size(0),
            source.size(1), plane(source), num_groups, wanted);
        write(grad_input, of_input);
        write(grad_weight, of_weight);
        write(grad_bias, of_bias);
    });
}

diopiError_t diopiInstanceNorm(diopiContextHandle_t, diopiTensorHandle_t output, diopiConstTensorHandle_t input,
                               const int64_t axis, diopiConstTensorHandle_t scale, diopiConstTensorHandle_t bias,
                               const double eps) {
    return guarded(
        [&] { write(output, instances_normalized(wide(input), maybe_lines(scale), maybe_lines(bias), axis, eps)); });
}

diopiError_t diopiInstanceNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                       diopiTensorHandle_t grad_scale, diopiTensorHandle_t grad_bias,
                                       diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                       diopiConstTensorHandle_t scale, diopiConstTensorHandle_t bias,
                                       const int64_t axis, const double eps) {
    return guarded([&] {
        const Tensors inputs{wide(input), maybe_lines(scale), maybe_lines(bias)};
        const Tensors grads = gradients(inputs, {tensor(grad_output)}, [&](const Tensors& in) {
            return Tensors{instances_normalized(in[0], in[1], in[2], axis, eps)};
        });
        write(grad_input, grads[0]);
        if (scale != nullptr) write(grad_scale, grads[1]);
        if (bias != nullptr) write(grad_bias, grads[2]);
    });
}

diopiError_t diopiNormalize(diopiContextHandle_t, diopiTensorHandle_t output, diopiConstTensorHandle_t input,
                            const float p, const int64_t axis, const double eps) {
    return guarded([&] { write(output, unit_length(wide(input), p, axis, eps)); });
}

diopiError_t diopiNormalizeBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, const float p,
                                    const int64_t axis, const double eps) {
    return guarded([&] {
        write(grad_input, gradients({wide(input)}, {tensor(grad_output)},
                                    [&](const Tensors& in) { return Tensors{unit_length(in[0], p, axis, eps)}; })[0]);
    });
}

}  // namespace impl::torch
