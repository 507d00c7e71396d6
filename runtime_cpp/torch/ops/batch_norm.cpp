// Batch normalization: what there is one of for each channel keeps its own dtype, float32 beside halves in mixed precision.
#include <ATen/core/Tensor.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>

#include <diopi/functions.h>

#include <array>
#include <tuple>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiBatchNorm)> diopiBatchNorm{{"diopiBatchNorm"}};
constinit VendorFunction<decltype(::diopiBatchNormBackward)> diopiBatchNormBackward{{"diopiBatchNormBackward"}};
}  // namespace vendor

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor per_channel(const at::Tensor& input, c10::ScalarType dtype) {
    return new_contiguous({input.size(1)}, dtype, input.device().index());
}

bool has_channels(const at::Tensor& input) {
    return (input.dim() >= 2 && !input.is_complex()) || refuse("no channels, or complex numbers");
}

// Whether what there is one of for each channel has the input's dtype, or is float32 beside halves.
template <class... Tensors>
bool suit(const at::Tensor& input, const Tensors&... per_channel) {
    const bool half = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
    const auto suits = [&](const OptionalTensor& tensor) {
        return !tensor.has_value() || !tensor->defined() || tensor->scalar_type() == input.scalar_type() ||
               (half && tensor->scalar_type() == at::kFloat);
    };
    return (suits(per_channel) && ...) || ask_torch("operands of several dtypes");
}

constinit OperatorControl native_batch_norm_control{"native_batch_norm"};
Three native_batch_norm(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                        const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                        double momentum, double eps) {
    if (intercepted(native_batch_norm_control)) {
        return at::_ops::native_batch_norm::redispatch(kInterposer, input, weight, bias, running_mean, running_var,
                                                       training, momentum, eps);
    }
    if (has_channels(input) && suit(input, weight, bias, running_mean, running_var)) {
        const c10::Device device = input.device();
        const c10::ScalarType statistics = promoted(input.scalar_type(), at::kFloat);
        Three results{new_preserved(input, input.scalar_type()), per_channel(input, statistics),
                      per_channel(input, statistics)};
        auto& [out, save_mean, save_invstd] = results;
        Context context(input);
        const In input_arg(input, device);
        const In weight_arg(weight, device);
        const In bias_arg(bias, device);
        const InOut running_mean_arg(running_mean);
        const InOut running_var_arg(running_var);
        if (ran(vendor::diopiBatchNorm(context, out_handle(out), out_handle(save_mean), out_handle(save_invstd),
                                       input_arg, weight_arg, bias_arg, running_mean_arg, running_var_arg, training,
                                       momentum, eps),
                "diopiBatchNorm") &&
            running_mean_arg.flush() && running_var_arg.flush()) {
            return results;
        }
    }
    return at::_ops::native_batch_norm::redispatch(kFallback, input, weight, bias, running_mean, running_var, training,
                                                   momentum, eps);
}

using ThreeOuts = std::tuple<at::Tensor&, at::Tensor&, at::Tensor&>;

constinit OperatorControl native_batch_norm_out_control{"native_batch_norm.out"};
ThreeOuts native_batch_norm_out(const at::Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                                double momentum, double eps, at::Tensor& out, at::Tensor& save_mean,
                                at::Tensor& save_invstd) {
    if (intercepted(native_batch_norm_out_control)) {
        return at::_ops::native_batch_norm_out::redispatch(kInterposer, input, weight, bias, running_mean, running_var,
                                                           training, momentum, eps, out, save_mean, save_invstd);
    }
    const auto [result, mean, invstd] =
        native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    assign(out, result);
    assign(save_mean, mean);
    assign(save_invstd, invstd);
    return {out, save_mean, save_invstd};
}

constinit OperatorControl native_batch_norm_backward_control{"native_batch_norm_backward"};
Three native_batch_norm_backward(const at::Tensor& grad_out, const at::Tensor& input, const OptionalTensor& weight,
                                 const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                 const OptionalTensor& save_mean, const OptionalTensor& save_invstd, bool train,
                                 double eps, std::array<bool, 3> output_mask) {
    if (intercepted(native_batch_norm_backward_control)) {
        return at::_ops::native_batch_norm_backward::redispatch(kInterposer, grad_out, input, weight, running_mean,
                                                                running_var, save_mean, save_invstd, train, eps,
                                                                output_mask);
    }
    if (has_channels(input)) {
        const c10::Device device = input.device();
        const c10::ScalarType parameters =
            weight.has_value() && weight->defined() ? weight->scalar_type() : input.scalar_type();
        Three results;
        auto& [grad_input, grad_weight, grad_bias] = results;
        grad_input = output_mask[0] ? new_preserved(input, input.scalar_type()) : at::Tensor();
        grad_weight = output_mask[1] ? per_channel(input, parameters) : at::Tensor();
        grad_bias = output_mask[2] ? per_channel(input, parameters) : at::Tensor();
        Context context(input);
        const In grad_arg(grad_out, input.scalar_type(), device);
        const In input_arg(input, device);
        const In weight_arg(weight, device);
        const In running_mean_arg(running_mean, device);
        const In running_var_arg(running_var, device);
        const In save_mean_arg(save_mean, device);
        const In save_invstd_arg(save_invstd, device);
        if (ran(vendor::diopiBatchNormBackward(context, out_handle(grad_input), out_handle(grad_weight),
                                               out_handle(grad_bias), grad_arg, input_arg, weight_arg, running_mean_arg,
                                               running_var_arg, save_mean_arg, save_invstd_arg, train, eps),
                "diopiBatchNormBackward")) {
            return results;
        }
    }
    return at::_ops::native_batch_norm_backward::redispatch(
        kFallback, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask);
}

}  // namespace

void register_batch_norm(Registrar& registrar) {
    registrar.add(native_batch_norm_control, &native_batch_norm, {&vendor::diopiBatchNorm});
    registrar.add(native_batch_norm_out_control, &native_batch_norm_out, {&vendor::diopiBatchNorm});
    registrar.add(native_batch_norm_backward_control, &native_batch_norm_backward, {&vendor::diopiBatchNormBackward});
}

}  // namespace dipu
