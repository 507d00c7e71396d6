// Batch norms, with statistics in float32 at least, and their steps over several devices by formulas: ATen has those
// only on a GPU.
#include <ATen/TensorOperators.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/var_mean.h>
#include <diopi/functions.h>

#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// One value for each channel, in the shape that broadcasts over `like`.
at::Tensor channelwise(const at::Tensor& values, const at::Tensor& like) {
    std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
    shape[1] = -1;
    return values.reshape(shape);
}

std::vector<int64_t> all_but_channels(const at::Tensor& input) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < input.dim(); ++d) dims.push_back(d);
    return dims;
}

// `running` moves towards `value`.
void blend(diopiTensorHandle_t running, const at::Tensor& value, double momentum) {
    if (running == nullptr) return;
    write(running, wide(running) * (1 - momentum) + value * momentum);
}

}  // namespace

diopiError_t diopiBatchNorm(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiTensorHandle_t running_mean, diopiTensorHandle_t running_var, bool training,
                            double momentum, double eps) {
    return guarded([&] {
        // Changed in place, written back to where they may be narrower.
        const at::Tensor means = maybe_lines(running_mean);
        const at::Tensor variances = maybe_lines(running_var);
        const auto [normalized, mean, invstd] = at::native_batch_norm(
            wide(input), maybe_lines(weight), maybe_lines(bias), means, variances, training, momentum, eps);
        write(out, normalized);
        if (!training) return;  // nothing is saved: ATen's results are empty
        write(save_mean, mean);
        write(save_invstd, invstd);
        if (means.defined()) write(running_mean, means);
        if (variances.defined()) write(running_var, variances);
    });
}

diopiError_t diopiBatchNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t weight, diopiConstTensorHandle_t running_mean,
                                    diopiConstTensorHandle_t running_var, diopiConstTensorHandle_t save_mean,
                                    diopiConstTensorHandle_t save_invstd, bool training, double eps) {
    return guarded([&] {
        const std::array<bool, 3> wanted{grad_input != nullptr, grad_weight != nullptr, grad_bias != nullptr};
        const auto [of_input, of_weight, of_bias] = at::native_batch_norm_backward(
            wide(grad_output), wide(input), maybe_lines(weight), maybe_lines(running_mean), maybe_lines(running_var),
            maybe_lines(save_mean), maybe_lines(save_invstd), training, eps, wanted);
        write(grad_input, of_input);
        write(grad_weight, of_weight);
        write(grad_bias, of_bias);
    });
}

diopiError_t diopiBatchNormStats(diopiContextHandle_t, diopiTensorHandle_t mean, diopiTensorHandle_t invstd,
                                 diopiConstTensorHandle_t input, double eps) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        const auto [variance, average] = at::var_mean(source, all_but_channels(source), 0);
        write(mean, average);
        write(invstd, (variance + eps).rsqrt());
    });
}

diopiError_t diopiBatchNormGatherStatsWithCounts(diopiContextHandle_t, diopiTensorHandle_t mean,
                                                 diopiTensorHandle_t invstd, diopiConstTensorHandle_t,
                                                 diopiConstTensorHandle_t mean_all, diopiConstTensorHandle_t invstd_all,
                                                 diopiTensorHandle_t running_mean, diopiTensorHandle_t running_var,
                                                 float momentum, float eps, diopiConstTensorHandle_t counts) {
    return guarded([&] {
        const at::Tensor count = wide(counts).unsqueeze(1);
        const at::Tensor total = count.sum();
        const at::Tensor means = wide(mean_all);
        const at::Tensor common = (count * means).sum(0) / total;
        const at::Tensor variances = wide(invstd_all).pow(-2) - eps;
        const at::Tensor squares = (count * (variances + (means - common).square())).sum(0);
        write(mean, common);
        write(invstd, (squares / total + eps).rsqrt());
        blend(running_mean, common, momentum);
        blend(running_var, squares / (total - 1), momentum);
    });
}

diopiError_t diopiBatchNormElemt(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                 diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                                 diopiConstTensorHandle_t mean, diopiConstTensorHandle_t invstd, float) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        at::Tensor found = (source - channelwise(wide(mean), source)) * channelwise(wide(invstd), source);
        if (weight != nullptr) found = found * channelwise(wide(weight), source);
        if (bias != nullptr) found = found + channelwise(wide(bias), source);
        write(out, found);
    });
}

diopiError_t diopiBatchNormBackwardReduce(diopiContextHandle_t, diopiTensorHandle_t sum_dy,
                                          diopiTensorHandle_t sum_dy_xmu, diopiTensorHandle_t grad_weight,
                                          diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_out,
                                          diopiConstTensorHandle_t input, diopiConstTensorHandle_t mean,
                                          diopiConstTensorHandle_t invstd, diopiConstTensorHandle_t, bool input_g,
                                          bool weight_g, bool bias_g) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        const at::Tensor grad = wide(grad_out);
        const std::vector<int64_t> rest = all_but_channels(source);
        const at::Tensor total = grad.sum(rest);
        const at::Tensor products = (grad * (source - channelwise(wide(mean), source))).sum(rest);
        if (input_g) write(sum_dy, total);
        if (input_g) write(sum_dy_xmu, products);
        if (weight_g) write(grad_weight, products * wide(invstd));
        if (bias_g) write(grad_bias, total);
    });
}

diopiError_t diopiBatchNormBackwardElemt(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                         diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t input,
                                         diopiConstTensorHandle_t mean, diopiConstTensorHandle_t invstd,
                                         diopiConstTensorHandle_t weight, diopiConstTensorHandle_t sum_dy,
                                         diopiConstTensorHandle_t sum_dy_xmu, diopiConstTensorHandle_t count) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        const at::Tensor total = tensor(count).sum();
        const at::Tensor scale = channelwise(wide(invstd), source);
        const at::Tensor shift = channelwise(wide(sum_dy), source) / total;
        const at::Tensor slope = channelwise(wide(sum_dy_xmu), source) / total;
        const at::Tensor centred = source - channelwise(wide(mean), source);
        at::Tensor found = (wide(grad_out) - shift - centred * scale.square() * slope) * scale;
        if (weight != nullptr) found = found * channelwise(wide(weight), source);
        write(grad_input, found);
    });
}

}  // namespace impl::torch
