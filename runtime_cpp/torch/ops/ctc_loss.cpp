// Connectionist temporal classification: torch's parts of it take lengths as lists or tensors, and reduce outside.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_ctc_loss_backward_ops.h>
#include <ATen/ops/_ctc_loss_ops.h>
#include <ATen/ops/max.h>
#include <ATen/ops/min.h>
#include <ATen/ops/tensor.h>

#include <diopi/functions.h>

#include <tuple>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiCTCLoss)> diopiCTCLoss{{"diopiCTCLoss"}};
constinit VendorFunction<decltype(::diopiCTCLossBackward)> diopiCTCLossBackward{{"diopiCTCLossBackward"}};
}  // namespace vendor

using Losses = std::tuple<at::Tensor, at::Tensor>;

const at::Tensor& as_tensor(const at::Tensor& lengths) { return lengths; }
at::Tensor as_tensor(at::IntArrayRef lengths) { return at::tensor(lengths, at::kLong); }

// Torch takes lengths from the CPU, too.
at::Tensor on(c10::Device device, const at::Tensor& lengths) {
    if (!lengths.is_cpu()) {
        check_device(lengths, device);
    }
    return lengths.to(device, at::kLong);
}

// Whether there is a length for each of the batch, between nothing and `most`.
bool are_lengths(const at::Tensor& lengths, int64_t batch, int64_t most) {
    if (lengths.dim() != 1 || lengths.numel() != batch || !c10::isIntegralType(lengths.scalar_type(), false)) {
        return false;
    }
    return batch == 0 || (at::min(lengths).item<int64_t>() >= 0 && at::max(lengths).item<int64_t>() <= most);
}

// Whether the lengths are those of these probabilities and targets; otherwise torch says what is wrong.
bool fits_lengths(const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
                  const at::Tensor& target_lengths) {
    const bool padded = targets.dim() == 2;
    const bool fits = log_probs.dim() == 3 && log_probs.numel() != 0 && (padded || targets.dim() == 1) &&
                      are_lengths(input_lengths, log_probs.size(1), log_probs.size(0)) &&
                      are_lengths(target_lengths, log_probs.size(1), padded ? targets.size(1) : targets.numel());
    return fits || ask_torch("lengths that are not those of the tensors");
}

// Both outputs are as torch's are: the caller hands the second to the gradient, and reads the first.
bool call_ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
                   const at::Tensor& target_lengths, int64_t blank, bool zero_infinity, Losses& losses) {
    const c10::Device device = log_probs.device();
    const int64_t batch = log_probs.size(1);
    const int64_t longest = target_lengths.numel() == 0 ? 0 : at::max(target_lengths).item<int64_t>();
    const auto fresh = [&](at::IntArrayRef sizes) {
        return new_contiguous(sizes, log_probs.scalar_type(), device.index());
    };
    auto& [likelihood, alpha] = losses;
    likelihood = fresh({batch});
    alpha = fresh({batch, log_probs.size(0), 2 * longest + 1});
    const at::Tensor reduced = fresh({batch});  // with no reduction the same as the first output
    Context context(log_probs);
    const In log_probs_arg(log_probs, device);
    const In targets_arg(targets, at::kLong, device);
    const at::Tensor input_ends = on(device, input_lengths);
    const at::Tensor target_ends = on(device, target_lengths);
    return ran(
        vendor::diopiCTCLoss(context, out_handle(reduced), out_handle(likelihood), out_handle(alpha), log_probs_arg,
                             targets_arg, handle(input_ends), handle(target_ends), blank, ReductionNone, zero_infinity),
        "diopiCTCLoss");
}

template <class Lengths, class Operator>
Losses ctc_loss_by(OperatorControl& control, const at::Tensor& log_probs, const at::Tensor& targets,
                   const Lengths& input_lengths, const Lengths& target_lengths, int64_t blank, bool zero_infinity) {
    if (intercepted(control)) {
        return Operator::redispatch(kInterposer, log_probs, targets, input_lengths, target_lengths, blank,
                                    zero_infinity);
    }
    Losses losses;
    if (fits_lengths(log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths)) &&
        call_ctc_loss(log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths), blank, zero_infinity,
                      losses)) {
        return losses;
    }
    return Operator::redispatch(kFallback, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity);
}

bool call_ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                            const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                            const at::Tensor& likelihood, const at::Tensor& alpha, int64_t blank, bool zero_infinity,
                            const at::Tensor& out) {
    const c10::Device device = log_probs.device();
    Context context(log_probs);
    const In grad_arg(grad, device);
    const In log_probs_arg(log_probs, device);
    const In targets_arg(targets, at::kLong, device);
    const at::Tensor input_ends = on(device, input_lengths);
    const at::Tensor target_ends = on(device, target_lengths);
    const In likelihood_arg(likelihood, device);
    const In alpha_arg(alpha, device);
    return ran(vendor::diopiCTCLossBackward(context, out_handle(out), grad_arg, log_probs_arg, targets_arg,
                                            handle(input_ends), handle(target_ends), likelihood_arg, alpha_arg, blank,
                                            ReductionNone, zero_infinity),
               "diopiCTCLossBackward");
}

template <class Lengths, class Operator>
at::Tensor ctc_loss_backward_by(OperatorControl& control, const at::Tensor& grad, const at::Tensor& log_probs,
                                const at::Tensor& targets, const Lengths& input_lengths, const Lengths& target_lengths,
                                const at::Tensor& likelihood, const at::Tensor& alpha, int64_t blank,
                                bool zero_infinity) {
    if (intercepted(control)) {
        return Operator::redispatch(kInterposer, grad, log_probs, targets, input_lengths, target_lengths, likelihood,
                                    alpha, blank, zero_infinity);
    }
    at::Tensor out = new_contiguous(log_probs.sizes(), log_probs.scalar_type(), log_probs.device().index());
    if (call_ctc_loss_backward(grad, log_probs, targets, as_tensor(input_lengths), as_tensor(target_lengths),
                               likelihood, alpha, blank, zero_infinity, out)) {
        return out;
    }
    return Operator::redispatch(kFallback, grad, log_probs, targets, input_lengths, target_lengths, likelihood, alpha,
                                blank, zero_infinity);
}

constinit OperatorControl _ctc_loss_control{"_ctc_loss"};
Losses _ctc_loss(const at::Tensor& log_probs, const at::Tensor& targets, at::IntArrayRef input_lengths,
                 at::IntArrayRef target_lengths, int64_t blank, bool zero_infinity) {
    return ctc_loss_by<at::IntArrayRef, at::_ops::_ctc_loss>(_ctc_loss_control, log_probs, targets, input_lengths,
                                                             target_lengths, blank, zero_infinity);
}

constinit OperatorControl _ctc_loss_Tensor_control{"_ctc_loss.Tensor"};
Losses _ctc_loss_Tensor(const at::Tensor& log_probs, const at::Tensor& targets, const at::Tensor& input_lengths,
                        const at::Tensor& target_lengths, int64_t blank, bool zero_infinity) {
    return ctc_loss_by<at::Tensor, at::_ops::_ctc_loss_Tensor>(_ctc_loss_Tensor_control, log_probs, targets,
                                                               input_lengths, target_lengths, blank, zero_infinity);
}

constinit OperatorControl _ctc_loss_backward_control{"_ctc_loss_backward"};
at::Tensor _ctc_loss_backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                              at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                              const at::Tensor& likelihood, const at::Tensor& alpha, int64_t blank,
                              bool zero_infinity) {
    return ctc_loss_backward_by<at::IntArrayRef, at::_ops::_ctc_loss_backward>(
        _ctc_loss_backward_control, grad, log_probs, targets, input_lengths, target_lengths, likelihood, alpha, blank,
        zero_infinity);
}

constinit OperatorControl _ctc_loss_backward_Tensor_control{"_ctc_loss_backward.Tensor"};
at::Tensor _ctc_loss_backward_Tensor(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                                     const at::Tensor& input_lengths, const at::Tensor& target_lengths,
                                     const at::Tensor& likelihood, const at::Tensor& alpha, int64_t blank,
                                     bool zero_infinity) {
    return ctc_loss_backward_by<at::Tensor, at::_ops::_ctc_loss_backward_Tensor>(
        _ctc_loss_backward_Tensor_control, grad, log_probs, targets, input_lengths, target_lengths, likelihood, alpha,
        blank, zero_infinity);
}

}  // namespace

void register_ctc_loss(Registrar& registrar) {
    registrar.add(_ctc_loss_control, &_ctc_loss, {&vendor::diopiCTCLoss});
    registrar.add(_ctc_loss_Tensor_control, &_ctc_loss_Tensor, {&vendor::diopiCTCLoss});
    registrar.add(_ctc_loss_backward_control, &_ctc_loss_backward, {&vendor::diopiCTCLossBackward});
    registrar.add(_ctc_loss_backward_Tensor_control, &_ctc_loss_backward_Tensor, {&vendor::diopiCTCLossBackward});
}

}  // namespace dipu
