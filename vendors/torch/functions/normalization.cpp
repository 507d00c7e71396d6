// Norms that ATen has under other arguments, or only as several operators.
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/native_group_norm.h>
#include <ATen/ops/native_group_norm_backward.h>
#include <ATen/ops/var_mean.h>
#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include "aten/call.h"
#include "aten/gradients.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// How many elements each channel of each sample has.
int64_t plane(const at::Tensor& input) {
    return input.dim() > 2 ? c10::multiply_integers(input.sizes().slice(2)) : 1;
}

at::Tensor wide(const at::Tensor& values) { return values.to(at::toOpMathType(values.scalar_type())); }

at::Tensor or_undefined(diopiConstTensorHandle_t handle) { return handle == nullptr ? at::Tensor() : tensor(handle); }

at::Tensor instances_normalized(const at::Tensor& input, const at::Tensor& scale, const at::Tensor& bias, int64_t axis,
                                double eps) {
    return at::instance_norm(input.movedim(axis, 1), scale, bias, {}, {}, true, 0, eps, false).movedim(1, axis);
}

at::Tensor unit_length(const at::Tensor& input, double p, int64_t axis, double eps) {
    return input / at::linalg_vector_norm(input, p, axis, true).clamp_min(eps);
}

std::vector<int64_t> range(int64_t first, int64_t end) {
    std::vector<int64_t> dims;
    for (int64_t d = first; d < end; ++d) dims.push_back(d);
    return dims;
}

// One over the root of the mean square of the last dimensions, as many as `normalized` has.
at::Tensor inverse_rms(const at::Tensor& input, at::IntArrayRef normalized, double eps) {
    const std::vector<int64_t> dims = range(-static_cast<int64_t>(normalized.size()), 0);
    return (input.square().mean(dims, true) + eps).rsqrt();
}

at::Tensor scaled_by(const at::Tensor& values, const at::Tensor& weight, const at::Tensor& bias) {
    const at::Tensor scaled = weight.defined() ? values * weight : values;
    return bias.defined() ? scaled + bias : scaled;
}

}  // namespace

diopiError_t diopiRMSNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t inv_rms,
                          diopiConstTensorHandle_t input, diopiSize_t normalized_shape, diopiConstTensorHandle_t weight,
                          diopiConstTensorHandle_t bias, double eps) {
    return guarded([&] {
        const at::Tensor source = wide(tensor(input));
        const at::Tensor inverse = inverse_rms(source, ints(normalized_shape), eps);
        write(out, scaled_by(source * inverse, or_undefined(weight), or_undefined(bias)));
        write(inv_rms, inverse);
    });
}

diopiError_t diopiRMSNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight,
                                  diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_output,
                                  diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
                                  diopiConstTensorHandle_t bias, diopiConstTensorHandle_t, diopiSize_t normalized_shape,
                                  double eps) {
    return guarded([&] {
        const Tensors inputs{wide(tensor(input)), or_undefined(weight), or_undefined(bias)};
        const Tensors grads = gradients(inputs, {tensor(grad_output)}, [&](const Tensors& in) {
            return Tensors{scaled_by(in[0] * inverse_rms(in[0], ints(normalized_shape), eps), in[1], in[2])};
        });
        write(grad_input, grads[0]);
        if (weight != nullptr) write(grad_weight, grads[1]);
        if (bias != nullptr) write(grad_bias, grads[2]);
    });
}

diopiError_t diopiGroupNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, int64_t num_groups, double eps) {
    return guarded([&] {
        const at::Tensor source = tensor(input).contiguous();
        const auto [normalized, mean, invstd] =
            at::native_group_norm(source, maybe_tensor(weight), maybe_tensor(bias), source.size(0), source.size(1),
                                  plane(source), num_groups, eps);
        write(out, normalized);
        write(save_mean, mean);
        write(save_invstd, invstd);
    });
}

diopiError_t diopiGroupNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight,
                                    diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_output,
                                    diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
                                    diopiConstTensorHandle_t mean, diopiConstTensorHandle_t rstd, int64_t num_groups) {
    return guarded([&] {
        const at::Tensor source = tensor(input).contiguous();
        const std::array<bool, 3> wanted{grad_input != nullptr, grad_weight != nullptr, grad_bias != nullptr};
        const auto [of_input, of_weight, of_bias] = at::native_group_norm_backward(
            tensor(grad_output).contiguous(), source, tensor(mean).contiguous(), tensor(rstd).contiguous(),
            maybe_tensor(weight), source.size(0), source.size(1), plane(source), num_groups, wanted);
        write(grad_input, of_input);
        write(grad_weight, of_weight);
        write(grad_bias, of_bias);
    });
}

diopiError_t diopiInstanceNorm(diopiContextHandle_t, diopiTensorHandle_t output, diopiConstTensorHandle_t input,
                               const int64_t axis, diopiConstTensorHandle_t scale, diopiConstTensorHandle_t bias,
                               const double eps) {
    return guarded([&] {
        write(output, instances_normalized(tensor(input), or_undefined(scale), or_undefined(bias), axis, eps));
    });
}

diopiError_t diopiInstanceNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                       diopiTensorHandle_t grad_scale, diopiTensorHandle_t grad_bias,
                                       diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                       diopiConstTensorHandle_t scale, diopiConstTensorHandle_t bias, const int64_t axis,
                                       const double eps) {
    return guarded([&] {
        const Tensors inputs{tensor(input), or_undefined(scale), or_undefined(bias)};
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
    return guarded([&] { write(output, unit_length(wide(tensor(input)), p, axis, eps)); });
}

diopiError_t diopiNormalizeBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, const float p,
                                    const int64_t axis, const double eps) {
    return guarded([&] {
        write(grad_input, gradients({wide(tensor(input))}, {tensor(grad_output)}, [&](const Tensors& in) {
                              return Tensors{unit_length(in[0], p, axis, eps)};
                          })[0]);
    });
}

diopiError_t diopiLayerNormGB(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t running_mean,
                              diopiTensorHandle_t running_var, diopiConstTensorHandle_t input,
                              diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, const double eps,
                              const int64_t begin_norm_axis) {
    return guarded([&] {
        const at::Tensor source = tensor(input);
        const int64_t first = c10::maybe_wrap_dim(begin_norm_axis, source.dim());
        const at::IntArrayRef normalized = source.sizes().slice(static_cast<size_t>(first));
        const auto [variance, mean] = at::var_mean(wide(source), range(first, source.dim()), 0, true);
        write(out, at::layer_norm(source, normalized, maybe_tensor(weight), maybe_tensor(bias), eps, false));
        write(running_mean, mean);
        write(running_var, variance);
    });
}

diopiError_t diopiLayerNormGBBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                      diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                      diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                      diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                                      diopiConstTensorHandle_t running_mean, diopiConstTensorHandle_t running_std,
                                      const int64_t begin_norm_axis) {
    return guarded([&] {
        const at::Tensor source = wide(tensor(input));
        const at::Tensor grad = wide(tensor(grad_output));
        const int64_t first = c10::maybe_wrap_dim(begin_norm_axis, source.dim());
        const std::vector<int64_t> inner = range(first, source.dim());
        const at::Tensor deviation = tensor(running_std);
        const at::Tensor normalized = (source - tensor(running_mean)) / deviation;
        const at::Tensor scaled = weight == nullptr ? grad : grad * tensor(weight);
        const at::Tensor along = normalized * (scaled * normalized).mean(inner, true);
        write(grad_input, (scaled - scaled.mean(inner, true) - along) / deviation);
        const std::vector<int64_t> outer = range(0, first);
        const auto summed = [&](const at::Tensor& values) { return outer.empty() ? values : values.sum(outer); };
        if (weight != nullptr) write(grad_weight, summed(grad * normalized));
        if (bias != nullptr) write(grad_bias, summed(grad));
    });
}

}  // namespace impl::torch
