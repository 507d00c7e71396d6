// Norms of the last dimensions, with statistics in float32 at least.
#include <ATen/TensorOperators.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

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

at::IntArrayRef sizes_from(const at::Tensor& input, int64_t axis) {
    return input.sizes().slice(static_cast<size_t>(c10::maybe_wrap_dim(axis, input.dim())));
}

void propagate(diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
               diopiConstTensorHandle_t grad_output, const at::Tensor& input, diopiConstTensorHandle_t weight,
               diopiConstTensorHandle_t bias, diopiConstTensorHandle_t mean, diopiConstTensorHandle_t rstd,
               at::IntArrayRef normalized) {
    const std::array<bool, 3> wanted{grad_input != nullptr, grad_weight != nullptr, grad_bias != nullptr};
    const auto [of_input, of_weight, of_bias] =
        at::native_layer_norm_backward(wide_lines(grad_output), input, normalized, wide_lines(mean), wide_lines(rstd),
                                       maybe_lines(weight), maybe_lines(bias), wanted);
    write(grad_input, of_input);
    write(grad_weight, of_weight);
    write(grad_bias, of_bias);
}

}  // namespace

diopiError_t diopiLayerNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiSize_t normalized_shape, double eps) {
    return guarded([&] {
        const auto [normalized, mean, invstd] =
            at::native_layer_norm(wide(input), ints(normalized_shape), maybe_lines(weight), maybe_lines(bias), eps);
        write(out, normalized);
        write(save_mean, mean);
        write(save_invstd, invstd);
    });
}

diopiError_t diopiLayerNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                                    diopiConstTensorHandle_t mean, diopiConstTensorHandle_t rstd,
                                    diopiSize_t normalized_shape) {
    return guarded([&] {
        propagate(grad_input, grad_weight, grad_bias, grad_output, wide_lines(input), weight, bias, mean, rstd,
                  ints(normalized_shape));
    });
}

diopiError_t diopiRMSNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t inv_rms,
                          diopiConstTensorHandle_t input, diopiSize_t normalized_shape, diopiConstTensorHandle_t weight,
                          diopiConstTensorHandle_t bias, double eps) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        const at::Tensor inverse = inverse_rms(source, ints(normalized_shape), eps);
        write(out, scaled_by(source * inverse, maybe_lines(weight), maybe_lines(bias)));
        write(inv_rms, inverse);
    });
}

diopiError_t diopiRMSNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight,
                                  diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_output,
                                  diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
                                  diopiConstTensorHandle_t bias, diopiConstTensorHandle_t, diopiSize_t normalized_shape,
                                  double eps) {
    return guarded([&] {
        const Tensors inputs{wide(input), maybe_lines(weight), maybe_lines(bias)};
        const Tensors grads = gradients(inputs, {tensor(grad_output)}, [&](const Tensors& in) {
            return Tensors{scaled_by(in[0] * inverse_rms(in[0], ints(normalized_shape), eps), in[1], in[2])};
        });
        write(grad_input, grads[0]);
        if (weight != nullptr) write(grad_weight, grads[1]);
        if (bias != nullptr) write(grad_bias, grads[2]);
    });
}

diopiError_t diopiLayerNormGB(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t running_mean,
                              diopiTensorHandle_t running_var, diopiConstTensorHandle_t input,
                              diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, const double eps,
                              const int64_t begin_norm_axis) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        const auto [normalized, mean, invstd] = at::native_layer_norm(source, sizes_from(source, begin_norm_axis),
                                                                      maybe_lines(weight), maybe_lines(bias), eps);
        write(out, normalized);
        write(running_mean, mean);
        write(running_var, invstd);
    });
}

diopiError_t diopiLayerNormGBBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                      diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                      diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                      diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                                      diopiConstTensorHandle_t running_mean, diopiConstTensorHandle_t running_std,
                                      const int64_t begin_norm_axis) {
    return guarded([&] {
        const at::Tensor source = wide_lines(input);
        propagate(grad_input, grad_weight, grad_bias, grad_output, source, weight, bias, running_mean, running_std,
                  sizes_from(source, begin_norm_axis));
    });
}

}  // namespace impl::torch
