// Division by the root mean square: what is saved for the gradient is float32 beside halves, and no `eps` means the dtype's own.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_rms_norm_backward_ops.h>
#include <ATen/ops/_fused_rms_norm_ops.h>

#include <diopi/functions_ext.h>

#include <array>
#include <limits>
#include <tuple>

#include "shapes/shapes.h"
#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiRMSNorm)> diopiRMSNorm{{"diopiRMSNorm"}};
constinit VendorFunction<decltype(::diopiRMSNormBackward)> diopiRMSNormBackward{{"diopiRMSNormBackward"}};
}  // namespace vendor

using OptionalTensor = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;

// What torch adds where the caller names nothing: the resolution of the dtype that it computes in.
double resolution(c10::ScalarType dtype) {
    return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

bool has_vendor_form(const at::Tensor& input, const OptionalTensor& weight) {
    const bool alike = !weight.has_value() || !weight->defined() || weight->scalar_type() == input.scalar_type();
    return (input.is_floating_point() && alike) || refuse("no real numbers, or a weight of another dtype");
}

constinit OperatorControl rms_norm_control{"_fused_rms_norm"};
Two rms_norm(const at::Tensor& input, at::IntArrayRef normalized_shape, const OptionalTensor& weight,
             std::optional<double> eps) {
    if (intercepted(rms_norm_control)) {
        return at::_ops::_fused_rms_norm::redispatch(kInterposer, input, normalized_shape, weight, eps);
    }
    if (has_vendor_form(input, weight)) {
        const c10::ScalarType dtype = input.scalar_type();
        const c10::DeviceIndex index = input.device().index();
        Two results{new_like(input), new_contiguous(shape::statistics(input.sizes(), normalized_shape),
                                                    promoted(dtype, at::kFloat), index)};
        auto& [out, inverse] = results;
        Context context(input);
        const In input_arg(input, input.device());
        const In weight_arg(weight, input.device());
        if (ran(vendor::diopiRMSNorm(context, out_handle(out), out_handle(inverse), input_arg,
                                     size_arg(normalized_shape), weight_arg, nullptr, eps.value_or(resolution(dtype))),
                "diopiRMSNorm")) {
            return results;
        }
    }
    return at::_ops::_fused_rms_norm::redispatch(kFallback, input, normalized_shape, weight, eps);
}

constinit OperatorControl rms_norm_backward_control{"_fused_rms_norm_backward"};
Two rms_norm_backward(const at::Tensor& grad_out, const at::Tensor& input, at::IntArrayRef normalized_shape,
                      const at::Tensor& rstd, const OptionalTensor& weight, std::array<bool, 2> output_mask) {
    if (intercepted(rms_norm_backward_control)) {
        return at::_ops::_fused_rms_norm_backward::redispatch(kInterposer, grad_out, input, normalized_shape, rstd,
                                                              weight, output_mask);
    }
    if (has_vendor_form(input, weight)) {
        const c10::ScalarType dtype = input.scalar_type();
        const bool has_weight = weight.has_value() && weight->defined();
        const at::Tensor grad_input = new_like(input);
        const at::Tensor grad_weight = has_weight && output_mask[1]
                                           ? new_contiguous(weight->sizes(), dtype, input.device().index())
                                           : at::Tensor();
        Context context(input);
        const In grad_arg(grad_out, dtype, input.device());
        const In input_arg(input, input.device());
        const In weight_arg(weight, input.device());
        const In inverse_arg(rstd, input.device());
        // The function takes `eps` and has no use for it: the inverse holds it.
        if (ran(vendor::diopiRMSNormBackward(context, out_handle(grad_input), out_handle(grad_weight), nullptr,
                                             grad_arg, input_arg, weight_arg, nullptr, inverse_arg,
                                             size_arg(normalized_shape), resolution(dtype)),
                "diopiRMSNormBackward")) {
            return {output_mask[0] ? grad_input : at::Tensor(), grad_weight};
        }
    }
    return at::_ops::_fused_rms_norm_backward::redispatch(kFallback, grad_out, input, normalized_shape, rstd, weight,
                                                          output_mask);
}

}  // namespace

void register_rms_norm(Registrar& registrar) {
    // Either alone would leave a step without its gradient, or without a function for it.
    registrar.add(rms_norm_control, &rms_norm, {&vendor::diopiRMSNorm, &vendor::diopiRMSNormBackward});
    registrar.add(rms_norm_backward_control, &rms_norm_backward,
                  {&vendor::diopiRMSNorm, &vendor::diopiRMSNormBackward});
}

}  // namespace dipu
