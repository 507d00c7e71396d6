// The fused optimizers: torch gives lists of parameters, a gradient scale and a flag that skips the step.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_adam_ops.h>
#include <ATen/ops/_fused_adamw_ops.h>
#include <ATen/ops/_fused_sgd_ops.h>

#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiFusedAdam)> diopiFusedAdam{{"diopiFusedAdam"}};
constinit VendorFunction<decltype(::diopiFusedAdamW)> diopiFusedAdamW{{"diopiFusedAdamW"}};
constinit VendorFunction<decltype(::diopiFusedSgd)> diopiFusedSgd{{"diopiFusedSgd"}};
constinit VendorFunction<decltype(::diopiSgd)> diopiSgd{{"diopiSgd"}};
}  // namespace vendor

using OptionalTensor = std::optional<at::Tensor>;

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

// The numbers of a step that may lie on the device: where they do, nothing waits for them.
struct StepNumbers {
    at::Tensor rate, grad_scale, found_inf;
    double lr;

    StepNumbers(const at::Tensor& self, const at::Tensor* lr_tensor, double lr_number, const OptionalTensor& scale,
                const OptionalTensor& inf)
        : grad_scale(on_device(self, scale)),
          found_inf(on_device(self, inf)),
          lr(lr_number) {
        if (lr_tensor != nullptr && lr_tensor->device() == self.device()) {
            rate = lr_tensor->to(at::kFloat);
        } else if (lr_tensor != nullptr) {
            lr = lr_tensor->item<double>();
        }
    }

    // For libraries whose functions read none of them: waits for the numbers, and leaves unscaled gradients behind, as torch does. False where
    // the step is skipped.
    bool wait_for(at::TensorList grads) {
        if (found_inf.defined() && found_inf.item<float>() != 0) {
            return false;
        }
        for (const at::Tensor& grad : grads) {
            if (grad_scale.defined()) {
                grad.div_(grad_scale);
            }
        }
        lr = rate.defined() ? rate.item<double>() : lr;
        rate = grad_scale = found_inf = at::Tensor();
        return true;
    }

    bool any() const { return rate.defined() || grad_scale.defined() || found_inf.defined(); }

private:
    static at::Tensor on_device(const at::Tensor& self, const OptionalTensor& number) {
        return number.has_value() && number->defined() ? number->to(self.device(), at::kFloat) : at::Tensor();
    }
};

void check_devices(at::TensorList tensors, c10::Device device) {
    for (const at::Tensor& tensor : tensors) {
        check_device(tensor, device);
    }
}

// By the function for one parameter.
bool call_sgd_alone(const at::Tensor& self, const at::Tensor& grad, const at::Tensor& buffer, double weight_decay,
                    double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step) {
    if (is_first_step && buffer.defined()) {
        buffer.zero_();
    }
    // The function knows no `maximize`: climbing is descending along the negated gradient. On the first step the buffer becomes the
    // gradient itself, without dampening.
    const at::Tensor way = maximize ? grad.neg() : grad;
    Context context(self);
    check_device(buffer, self.device());
    return ran(vendor::diopiSgd(context, out_handle(self), out_handle(way), out_handle(buffer), lr, momentum,
                                is_first_step ? 0 : dampening, weight_decay, nesterov),
               "diopiSgd");
}

bool call_sgd(at::TensorList self, at::TensorList grads, at::TensorList buffers, double weight_decay, double momentum,
              const StepNumbers& numbers, double dampening, bool nesterov, bool maximize, bool is_first_step) {
    if (!are_complete(self, {grads}, buffers) || (momentum != 0 && !are_complete(self, {buffers}, {}))) {
        return false;
    }
    check_devices(grads, self[0].device());
    if (vendor::diopiFusedSgd.address == nullptr) {
        for (std::size_t i = 0; i < self.size(); ++i) {
            const at::Tensor buffer = momentum != 0 ? buffers[i] : at::Tensor();
            if (!call_sgd_alone(self[i], grads[i], buffer, weight_decay, momentum, numbers.lr, dampening, nesterov,
                                maximize, is_first_step)) {
                return false;
            }
        }
        return true;
    }
    Context context(self[0]);
    OutList self_arg(self);
    OutList grads_arg(grads);
    OptionalOutList buffers_arg(buffers, self.size());
    return ran(vendor::diopiFusedSgd(context, self_arg, grads_arg, buffers_arg, self_arg.size(), handle(numbers.rate),
                                     handle(numbers.grad_scale), handle(numbers.found_inf), numbers.lr, momentum,
                                     dampening, weight_decay, nesterov, maximize, is_first_step),
               "diopiFusedSgd");
}

void sgd(at::TensorList self, at::TensorList grads, at::TensorList buffers, double weight_decay, double momentum,
         const at::Tensor* lr_tensor, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
         const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    if (self.empty()) {
        return;
    }
    StepNumbers numbers(self[0], lr_tensor, lr, grad_scale, found_inf);
    if (vendor::diopiFusedSgd.address == nullptr && !numbers.wait_for(grads)) {
        return;
    }
    if (!call_sgd(self, grads, buffers, weight_decay, momentum, numbers, dampening, nesterov, maximize,
                  is_first_step)) {
        if (numbers.wait_for(grads)) {
            at::_ops::_fused_sgd_::redispatch(kFallback, self, grads, buffers, weight_decay, momentum, numbers.lr,
                                              dampening, nesterov, maximize, is_first_step, std::nullopt, std::nullopt);
        }
    }
}

constinit OperatorControl fused_sgd_control{"_fused_sgd_"};
void fused_sgd(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
               const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    if (intercepted(fused_sgd_control)) {
        at::_ops::_fused_sgd_::redispatch(kInterposer, self, grads, momentum_buffer_list, weight_decay, momentum, lr,
                                          dampening, nesterov, maximize, is_first_step, grad_scale, found_inf);
        return;
    }
    sgd(self, grads, momentum_buffer_list, weight_decay, momentum, nullptr, lr, dampening, nesterov, maximize,
        is_first_step, grad_scale, found_inf);
}

constinit OperatorControl fused_sgd_tensor_lr_control{"_fused_sgd_.tensor_lr"};
void fused_sgd_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffer_list,
                         double weight_decay, double momentum, const at::Tensor& lr, double dampening, bool nesterov,
                         bool maximize, bool is_first_step, const OptionalTensor& grad_scale,
                         const OptionalTensor& found_inf) {
    if (intercepted(fused_sgd_tensor_lr_control)) {
        at::_ops::_fused_sgd__tensor_lr::redispatch(kInterposer, self, grads, momentum_buffer_list, weight_decay,
                                                    momentum, lr, dampening, nesterov, maximize, is_first_step,
                                                    grad_scale, found_inf);
        return;
    }
    sgd(self, grads, momentum_buffer_list, weight_decay, momentum, &lr, 0, dampening, nesterov, maximize, is_first_step,
        grad_scale, found_inf);
}

bool call_adam(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
               at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const StepNumbers& numbers, double beta1,
               double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, bool decoupled) {
    if (!are_complete(self, {grads, exp_avgs, exp_avg_sqs, state_steps}, max_exp_avg_sqs)) {
        return false;
    }
    Context context(self[0]);
    OutList self_arg(self);
    check_devices(grads, self[0].device());
    OutList grads_arg(grads);
    OutList exp_avgs_arg(exp_avgs);
    OutList exp_avg_sqs_arg(exp_avg_sqs);
    OptionalOutList max_exp_avg_sqs_arg(max_exp_avg_sqs, self.size());
    InList state_steps_arg(state_steps, self[0].device());
    if (decoupled && !numbers.any() && vendor::diopiFusedAdamW.address != nullptr) {
        return ran(vendor::diopiFusedAdamW(context, self_arg, InList(grads, self[0].device()), exp_avgs_arg,
                                           exp_avg_sqs_arg, max_exp_avg_sqs_arg, state_steps_arg, self_arg.size(),
                                           numbers.lr, beta1, beta2, eps, weight_decay, amsgrad, maximize),
                   "diopiFusedAdamW");
    }
    return ran(vendor::diopiFusedAdam(context, self_arg, grads_arg, exp_avgs_arg, exp_avg_sqs_arg, max_exp_avg_sqs_arg,
                                      state_steps_arg, self_arg.size(), handle(numbers.rate),
                                      handle(numbers.grad_scale), handle(numbers.found_inf), numbers.lr, beta1, beta2,
                                      eps, weight_decay, amsgrad, maximize, decoupled),
               "diopiFusedAdam");
}

// A step of `_fused_adam_` or `_fused_adamw_`, which differ in what weight decay does.
template <class Overload, bool decoupled>
void adam_step(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
               at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const at::Tensor* lr_tensor, double lr,
               double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
               const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    if (self.empty()) {
        return;
    }
    StepNumbers numbers(self[0], lr_tensor, lr, grad_scale, found_inf);
    if (vendor::diopiFusedAdam.address == nullptr && !numbers.wait_for(grads)) {
        return;
    }
    if (!call_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, numbers, beta1, beta2,
                   weight_decay, eps, amsgrad, maximize, decoupled)) {
        if (numbers.wait_for(grads)) {
            Overload::redispatch(kFallback, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,
                                 numbers.lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, std::nullopt,
                                 std::nullopt);
        }
    }
}

template <class Overload, OperatorControl& control, bool decoupled>
void adam(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
          at::TensorList max_exp_avg_sqs, at::TensorList state_steps, double lr, double beta1, double beta2,
          double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor& grad_scale,
          const OptionalTensor& found_inf) {
    if (intercepted(control)) {
        Overload::redispatch(kInterposer, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1,
                             beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
        return;
    }
    adam_step<Overload, decoupled>(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, nullptr, lr, beta1,
                                   beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

template <class Overload, class Plain, OperatorControl& control, bool decoupled>
void adam_tensor_lr(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                    at::TensorList max_exp_avg_sqs, at::TensorList state_steps, const at::Tensor& lr, double beta1,
                    double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                    const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    if (intercepted(control)) {
        Overload::redispatch(kInterposer, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1,
                             beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
        return;
    }
    adam_step<Plain, decoupled>(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, &lr, 0, beta1, beta2,
                                weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

constinit OperatorControl fused_adam_control{"_fused_adam_"};
constinit OperatorControl fused_adam_tensor_lr_control{"_fused_adam_.tensor_lr"};
constinit OperatorControl fused_adamw_control{"_fused_adamw_"};
constinit OperatorControl fused_adamw_tensor_lr_control{"_fused_adamw_.tensor_lr"};

}  // namespace

void register_optimizer(Registrar& registrar) {
    registrar.add_any(fused_sgd_control, &fused_sgd, {&vendor::diopiFusedSgd, &vendor::diopiSgd});
    registrar.add_any(fused_sgd_tensor_lr_control, &fused_sgd_tensor_lr, {&vendor::diopiFusedSgd, &vendor::diopiSgd});
    registrar.add(fused_adam_control, &adam<at::_ops::_fused_adam_, fused_adam_control, false>,
                  {&vendor::diopiFusedAdam});
    registrar.add(
        fused_adam_tensor_lr_control,
        &adam_tensor_lr<at::_ops::_fused_adam__tensor_lr, at::_ops::_fused_adam_, fused_adam_tensor_lr_control, false>,
        {&vendor::diopiFusedAdam});
    registrar.add_any(fused_adamw_control, &adam<at::_ops::_fused_adamw_, fused_adamw_control, true>,
                      {&vendor::diopiFusedAdam, &vendor::diopiFusedAdamW});
    registrar.add_any(fused_adamw_tensor_lr_control,
                      &adam_tensor_lr<at::_ops::_fused_adamw__tensor_lr, at::_ops::_fused_adamw_,
                                      fused_adamw_tensor_lr_control, true>,
                      {&vendor::diopiFusedAdam, &vendor::diopiFusedAdamW});
}

}  // namespace dipu
