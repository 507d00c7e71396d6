// The fused optimizers: torch gives lists of parameters, a gradient scale and a flag that skips the step.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>

#include <diopi/functions.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiFusedAdamW)> diopiFusedAdamW{{"diopiFusedAdamW"}};
constinit VendorFunction<decltype(::diopiSgd)> diopiSgd{{"diopiSgd"}};
}  // namespace vendor

// An overflow was found while the gradients were unscaled: the step is skipped. Reading the flag waits for the device.
bool overflowed(const std::optional<at::Tensor>& found_inf) {
    return found_inf.has_value() && found_inf->defined() && found_inf->item<float>() != 0;
}

// Torch's fused optimizers leave the unscaled gradients behind, so the division is done in place.
void unscale(at::TensorList grads, const std::optional<at::Tensor>& grad_scale) {
    if (grad_scale.has_value() && grad_scale->defined()) {
        for (const at::Tensor& grad : grads) {
            grad.div_(*grad_scale);
        }
    }
}

// A list of outputs whose every handle may be null.
class OptionalOutList {
public:
    OptionalOutList(at::TensorList tensors, std::size_t length) : handles_(length, nullptr) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            handles_[i] = out_handle(tensors[i]);
        }
    }
    operator diopiTensorHandle_t*() { return handles_.data(); }

private:
    std::vector<diopiTensorHandle_t> handles_;
};

// Whether each list that is not empty has an entry for each parameter; `all` of them have to be there.
bool are_complete(at::TensorList self, std::initializer_list<at::TensorList> all, at::TensorList optional) {
    const auto complete = [&](at::TensorList list) { return list.size() == self.size(); };
    return (std::all_of(all.begin(), all.end(), complete) && (optional.empty() || complete(optional))) ||
           ask_torch("lists of several lengths");
}

bool call_sgd(at::TensorList self, at::TensorList grads, at::TensorList buffers, double weight_decay, double momentum,
              double lr, double dampening, bool nesterov, bool maximize, bool is_first_step) {
    if (!are_complete(self, {grads}, buffers) || (momentum != 0 && !are_complete(self, {buffers}, {}))) {
        return false;
    }
    for (std::size_t i = 0; i < self.size(); ++i) {
        // The contract has no `maximize`: climbing is descending along the negated gradient.
        const at::Tensor grad = maximize ? grads[i].neg() : grads[i];
        const at::Tensor buffer = momentum != 0 ? buffers[i] : at::Tensor();
        if (is_first_step && buffer.defined()) {
            buffer.zero_();
        }
        // On the first step the buffer becomes the gradient itself, without dampening.
        const double damping = is_first_step ? 0 : dampening;
        Context context(self[i]);
        check_device(grad, self[i].device());
        check_device(buffer, self[i].device());
        if (!ran(vendor::diopiSgd(context, out_handle(self[i]), out_handle(grad), out_handle(buffer), lr, momentum,
                                  damping, weight_decay, nesterov),
                 "diopiSgd")) {
            return false;
        }
    }
    return true;
}

constinit OperatorControl fused_sgd_control{"_fused_sgd_"};
void fused_sgd(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const std::optional<at::Tensor>& grad_scale, const std::optional<at::Tensor>& found_inf) {
    if (intercepted(fused_sgd_control)) {
        at::_ops::_fused_sgd_::redispatch(kInterposer, self, grads, momentum_buffer_list, weight_decay, momentum, lr,
                                          dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
        return;
    }
    if (overflowed(found_inf)) {
        return;
    }
    unscale(grads, grad_scale);
    if (!call_sgd(self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize,
                  is_first_step)) {
        at::_ops::_fused_sgd_::redispatch(kFallback, self, grads, momentum_buffer_list, weight_decay, momentum, lr,
                                          dampening, nesterov, maximize, is_first_step, std::nullopt, std::nullopt);
    }
}

constinit OperatorControl fused_sgd_tensor_lr_control{"_fused_sgd_.tensor_lr"};
void fused_sgd_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list,
                         double weight_decay, double momentum, const at::Tensor& lr, double dampening, bool nesterov,
                         bool maximize, bool is_first_step, const std::optional<at::Tensor>& grad_scale,
                         const std::optional<at::Tensor>& found_inf) {
    if (intercepted(fused_sgd_tensor_lr_control)) {
        at::_ops::_fused_sgd__tensor_lr::redispatch(kInterposer, self, grads, momentum_buffer_list, weight_decay,
                                                    momentum, lr, dampening, nesterov, maximize, is_first_step,
                                                    grad_scale, found_inf);
        return;
    }
    fused_sgd(self, grads, momentum_buffer_list, weight_decay, momentum, lr.item<double>(), dampening, nesterov,
              maximize, is_first_step, grad_scale, found_inf);
}

bool call_adamw(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize) {
    if (!are_complete(self, {grads, exp_avgs, exp_avg_sqs, state_steps}, max_exp_avg_sqs)) {
        return false;
    }
    Context context(self[0]);
    OutList self_arg(self);
    InList grads_arg(grads, self[0].device());
    OutList exp_avgs_arg(exp_avgs);
    OutList exp_avg_sqs_arg(exp_avg_sqs);
    OptionalOutList max_exp_avg_sqs_arg(max_exp_avg_sqs, self.size());
    InList state_steps_arg(state_steps, self[0].device());
    return ran(vendor::diopiFusedAdamW(context, self_arg, grads_arg, exp_avgs_arg, exp_avg_sqs_arg, max_exp_avg_sqs_arg,
                                       state_steps_arg, self_arg.size(), lr, beta1, beta2, eps, weight_decay, amsgrad,
                                       maximize),
               "diopiFusedAdamW");
}

constinit OperatorControl fused_adamw_control{"_fused_adamw_"};
void fused_adamw(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                 at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2,
                 double weight_decay, double eps, bool amsgrad, bool maximize,
                 const std::optional<at::Tensor>& grad_scale, const std::optional<at::Tensor>& found_inf) {
    if (intercepted(fused_adamw_control)) {
        at::_ops::_fused_adamw_::redispatch(kInterposer, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
                                            state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
                                            grad_scale, found_inf);
        return;
    }
    if (self.empty() || overflowed(found_inf)) {
        return;
    }
    unscale(grads, grad_scale);
    if (!call_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay,
                    eps, amsgrad, maximize)) {
        at::_ops::_fused_adamw_::redispatch(kFallback, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
                                            lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, std::nullopt,
                                            std::nullopt);
    }
}

constinit OperatorControl fused_adamw_tensor_lr_control{"_fused_adamw_.tensor_lr"};
void fused_adamw_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs,
                           at::TensorList exp_avg_sqs, at::TensorList max_exp_avg_sqs, at::TensorList state_steps,
                           const at::Tensor& lr, double beta1, double beta2, double weight_decay, double eps,
                           bool amsgrad, bool maximize, const std::optional<at::Tensor>& grad_scale,
                           const std::optional<at::Tensor>& found_inf) {
    if (intercepted(fused_adamw_tensor_lr_control)) {
        at::_ops::_fused_adamw__tensor_lr::redispatch(kInterposer, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
                                                      state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad,
                                                      maximize, grad_scale, found_inf);
        return;
    }
    fused_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr.item<double>(), beta1, beta2,
                weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

}  // namespace

void register_optimizer(Registrar& registrar) {
    registrar.add(fused_sgd_control, &fused_sgd, {&vendor::diopiSgd});
    registrar.add(fused_sgd_tensor_lr_control, &fused_sgd_tensor_lr, {&vendor::diopiSgd});
    registrar.add(fused_adamw_control, &fused_adamw, {&vendor::diopiFusedAdamW});
    registrar.add(fused_adamw_tensor_lr_control, &fused_adamw_tensor_lr, {&vendor::diopiFusedAdamW});
}

}  // namespace dipu
