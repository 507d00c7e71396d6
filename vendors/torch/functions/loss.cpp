// Losses that PyTorch composes or that have several kernels by rank, and gradients that it derives.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <diopi/functions.h>

#include <limits>

#include "aten/call.h"
#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor reduced(const at::Tensor& loss, diopiReduction_t reduction) {
    switch (reduction) {
        case ReductionNone: return loss;
        case ReductionMean: return loss.mean();
        default: return loss.sum();
    }
}

// at::_ctc_loss and its backward read what they are given as if it had no gaps.
at::Tensor dense(diopiConstTensorHandle_t handle) { return tensor(handle).contiguous(); }

// Lin et al., Focal Loss for Dense Object Detection, equation 5.
at::Tensor focal_loss(const at::Tensor& input, const at::Tensor& target, double alpha, double gamma,
                      diopiReduction_t reduction) {
    const at::Tensor probability = at::sigmoid(input);
    const at::Tensor missed = probability * (1 - target) + (1 - probability) * target;
    at::Tensor loss = at::binary_cross_entropy_with_logits(input, target, {}, {}, at::Reduction::None);
    loss = loss * missed.pow(gamma);
    if (alpha >= 0) loss = loss * (alpha * target + (1 - alpha) * (1 - target));
    return reduced(loss, reduction);
}

// The gradient of `forward`, a loss of one tensor.
template <class Forward>
void write_gradient(diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output,
                    diopiConstTensorHandle_t input, const Forward& forward) {
    write(grad_input,
          gradients({wide(input)}, {wide(grad_output)}, [&](const Tensors& in) { return Tensors{forward(in[0])}; })[0]);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor at_least_one(const at::Tensor& lengths, const at::Tensor& like) {
    return lengths.clamp_min(1).to(like.scalar_type());
}

// The weights of the targets that count, added up: what a mean is divided by. A loss that is not reduced has none.
at::Tensor total_weight(const at::Tensor& input, const at::Tensor& target, const std::optional<at::Tensor>& weight,
                        diopiReduction_t reduction, int64_t ignore_index) {
    if (reduction == ReductionNone) return at::zeros({}, input.options());
    const int64_t classes = input.size(input.dim() == 1 ? 0 : 1);
    const at::Tensor weights = weight.has_value() ? *weight : at::ones({classes}, input.options());
    return weights.index_select(0, target.masked_select(target != ignore_index)).sum();
}

// What the gradient of the reduced loss is to the loss of each sequence.
at::Tensor grad_of_each(const at::Tensor& grad, const at::Tensor& target_lengths, diopiReduction_t reduction) {
    const int64_t count = target_lengths.numel();
    if (reduction != ReductionMean) return grad.expand({count}).contiguous();
    return (grad / static_cast<double>(count)).expand({count}) / at_least_one(target_lengths, grad);
}

// `log_alpha` may have room for longer targets than there are.
void write_front(diopiTensorHandle_t log_alpha, const at::Tensor& value) {
    at::Tensor room = tensor(log_alpha);
    const int64_t width = value.size(2);
    room.fill_(-kInfinity);
    room.narrow(2, 0, width).copy_(value);
}

}  // namespace

diopiError_t diopiBCEWithLogitsBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                        diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction) {
    return guarded([&] {
        write_gradient(grad_input, grad_output, input, [&](const at::Tensor& in) {
            return at::binary_cross_entropy_with_logits(in, wide(target), maybe_wide(weight), maybe_wide(pos_weight),
                                                        reduction);
        });
    });
}

diopiError_t diopiNLLLoss(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight, diopiReduction_t reduction,
                          int64_t ignore_index) {
    return guarded(
        [&] { write(out, at::nll_loss_nd(wide(input), tensor(target), maybe_wide(weight), reduction, ignore_index)); });
}

diopiError_t diopiNLLLossV2(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t totalWeight,
                            diopiConstTensorHandle_t input, diopiConstTensorHandle_t target,
                            diopiConstTensorHandle_t weight, diopiReduction_t reduction, int64_t ignore_index) {
    return guarded([&] {
        const at::Tensor rows = wide(input);
        const at::Tensor classes = tensor(target);
        const std::optional<at::Tensor> weights = maybe_wide(weight);
        write(out, at::nll_loss_nd(rows, classes, weights, reduction, ignore_index));
        write(totalWeight, total_weight(rows, classes, weights, reduction, ignore_index));
    });
}

diopiError_t diopiNLLLossBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                  diopiReduction_t reduction, int64_t ignore_index) {
    return guarded([&] {
        write_gradient(grad_input, grad_output, input, [&](const at::Tensor& in) {
            return at::nll_loss_nd(in.contiguous(), tensor(target), maybe_wide(weight), reduction, ignore_index);
        });
    });
}

diopiError_t diopiNLLLossV2Backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                    diopiConstTensorHandle_t, diopiReduction_t reduction, int64_t ignore_index) {
    return impl::torch::diopiNLLLossBackward(ctx, grad_input, grad_output, input, target, weight, reduction,
                                             ignore_index);
}

diopiError_t diopiCrossEntropyLoss(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                   diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                   diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        write(out, at::cross_entropy_loss(wide(input), tensor(target), maybe_wide(weight), reduction, ignore_index,
                                          label_smoothing));
    });
}

diopiError_t diopiCrossEntropyLossBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                           diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                           diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                           diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        write_gradient(grad_input, grad_output, input, [&](const at::Tensor& in) {
            return at::cross_entropy_loss(in, tensor(target), maybe_wide(weight), reduction, ignore_index,
                                          label_smoothing);
        });
    });
}

diopiError_t diopiSigmoidFocalLoss(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t inputs,
                                   diopiConstTensorHandle_t targets, float alpha, float gamma,
                                   diopiReduction_t reduction) {
    return guarded([&] { write(out, focal_loss(wide(inputs), wide(targets), alpha, gamma, reduction)); });
}

diopiError_t diopiSigmoidFocalLossBackward(diopiContextHandle_t, diopiTensorHandle_t grad_output,
                                           diopiConstTensorHandle_t input, diopiConstTensorHandle_t target,
                                           diopiTensorHandle_t grad_input, float gamma, float alpha,
                                           diopiReduction_t reduction) {
    return guarded([&] {
        write_gradient(grad_input, grad_output, input,
                       [&](const at::Tensor& in) { return focal_loss(in, wide(target), alpha, gamma, reduction); });
    });
}

diopiError_t diopiCTCLoss(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t neg_log_likelihood,
                          diopiTensorHandle_t log_alpha, diopiConstTensorHandle_t log_probs,
                          diopiConstTensorHandle_t targets, diopiConstTensorHandle_t input_lengths,
                          diopiConstTensorHandle_t target_lengths, int64_t blank, diopiReduction_t reduction,
                          bool zero_infinity) {
    return guarded([&] {
        const at::Tensor lengths = dense(target_lengths);
        auto [likelihood, alpha] =
            at::_ctc_loss(dense(log_probs), dense(targets), dense(input_lengths), lengths, blank, zero_infinity);
        write(neg_log_likelihood, likelihood);
        write_front(log_alpha, alpha);
        at::Tensor loss = zero_infinity ? at::where(likelihood == kInfinity, 0, likelihood) : likelihood;
        if (reduction == ReductionMean) loss = loss / at_least_one(lengths, loss);
        write(out, reduced(loss, reduction));
    });
}

diopiError_t diopiCTCLossBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t log_probs,
                                  diopiConstTensorHandle_t targets, diopiConstTensorHandle_t input_lengths,
                                  diopiConstTensorHandle_t target_lengths, diopiConstTensorHandle_t neg_log_likelihood,
                                  diopiConstTensorHandle_t log_alpha, int64_t blank, diopiReduction_t reduction,
                                  bool zero_infinity) {
    return guarded([&] {
        const at::Tensor lengths = dense(target_lengths);
        const at::Tensor grad = grad_of_each(tensor(grad_output), lengths, reduction);
        write(grad_input, at::_ctc_loss_backward(grad, dense(log_probs), dense(targets), dense(input_lengths), lengths,
                                                 dense(neg_log_likelihood), dense(log_alpha), blank, zero_infinity));
    });
}

}  // namespace impl::torch
