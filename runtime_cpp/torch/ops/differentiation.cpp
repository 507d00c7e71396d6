// Operators that the device does at once and torch can differentiate in one way only: asked for another, they are composed of operators
// that it differentiates in each.
#include "differentiation.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_fused_attention_overrideable_backward_ops.h>
#include <ATen/ops/_thnn_fused_gru_cell_ops.h>
#include <ATen/ops/_thnn_fused_lstm_cell_ops.h>
#include <ATen/ops/linear_native.h>
#include <ATen/ops/linear_ops.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>

#include "library.h"

namespace dipu {
namespace {

// Torch's own derivative, which it registers for all devices.
c10::DispatchKeySet torchs_autograd(c10::DispatchKeySet keys) {
    return (keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradOther);
}

// Torch differentiates the operator backward; with tangents it is composed.
template <auto kCell, class Overload, class Signature = decltype(kCell)>
struct Cell;
template <auto kCell, class Overload, class Result, class... Args>
struct Cell<kCell, Overload, Result (*)(Args...)> {
    static Result call(c10::DispatchKeySet keys, Args... args) {
        return (has_tangent(args) || ...) ? kCell(args...) : Overload::redispatch(torchs_autograd(keys), args...);
    }
};

// Torch knows the derivative of a matrix with a vector as bias, only backward, and a second one of real numbers only; for
// the rest, and where the vendor has no linear layer, torch's composition.
at::Tensor linear(c10::DispatchKeySet keys, const at::Tensor& input, const at::Tensor& weight,
                  const std::optional<at::Tensor>& bias) {
    static const bool is_bound = c10::Dispatcher::singleton()
                                     .findSchemaOrThrow(at::_ops::linear::name, at::_ops::linear::overload_name)
                                     .hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
    const bool shaped = weight.dim() == 2 && (!bias.has_value() || bias->dim() <= 1);
    const bool plain =
        is_bound && shaped && !input.is_complex() && !has_tangent(input) && !has_tangent(weight) && !has_tangent(bias);
    if (!plain) {
        return at::native::linear(input, weight, bias);
    }
    // Of an operator that torch composes, the derivative stands only beside kernels of a backend: nested tensors have one.
    const auto below = (keys & c10::after_autograd_keyset).add(c10::DispatchKey::AutogradNestedTensor);
    return at::_ops::linear::redispatch(below, input, weight, bias);
}

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The gradients of attention, which have none of their own: they are those of its products where somebody wants to differentiate them.
Four composed_attention_backward(c10::DispatchKeySet keys, const at::Tensor& grad_out, const at::Tensor& query,
                                 const at::Tensor& key, const at::Tensor& value, const at::Tensor& attn_bias,
                                 std::array<bool, 4> grad_input_mask, const at::Tensor& out,
                                 const at::Tensor& logsumexp, const at::Tensor& cum_seq_q, const at::Tensor& cum_seq_k,
                                 c10::SymInt max_q, c10::SymInt max_k, double dropout_p, bool is_causal,
                                 const at::Tensor& philox_seed, const at::Tensor& philox_offset,
                                 std::optional<double> scale) {
    if (!grad_out.defined()) {
        return {};
    }
    const at::Tensor given[] = {query, key, value};
    std::vector<at::Tensor> wanted;
    bool follows = grad_out.requires_grad();
    for (std::size_t index = 0; index < std::size(given); ++index) {
        follows |= given[index].requires_grad();
        if (grad_input_mask[index] && given[index].requires_grad()) {
            wanted.push_back(given[index]);
        }
    }
    const bool plain = dropout_p == 0 && !attn_bias.defined() && !wanted.empty();
    if (!at::GradMode::is_enabled() || !follows || !plain) {
        return at::_ops::_scaled_dot_product_fused_attention_overrideable_backward::redispatch(
            torchs_autograd(keys), grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q,
            cum_seq_k, std::move(max_q), std::move(max_k), dropout_p, is_causal, philox_seed, philox_offset, scale);
    }
    const bool shares = query.sym_size(1) != key.sym_size(1);
    const at::Tensor attended =
        std::get<0>(at::_scaled_dot_product_attention_math(query, key, value, {}, 0, is_causal, {}, scale, shares));
    const auto found =
        torch::autograd::grad({attended}, wanted, {grad_out}, /*retain_graph=*/std::nullopt, /*create_graph=*/true);
    std::array<at::Tensor, 3> grads;
    for (std::size_t index = 0, next = 0; index < std::size(given); ++index) {
        if (grad_input_mask[index] && given[index].requires_grad()) {
            grads[index] = found[next++];
        }
    }
    return {grads[0], grads[1], grads[2], at::Tensor()};
}

}  // namespace

void register_differentiation() {
    torch::Library& library = new_library("aten", c10::DispatchKey::AutogradPrivateUse1);
    library.impl("_thnn_fused_lstm_cell", &Cell<&lstm_cell, at::_ops::_thnn_fused_lstm_cell>::call);
    library.impl("_thnn_fused_gru_cell", &Cell<&gru_cell, at::_ops::_thnn_fused_gru_cell>::call);
    library.impl("linear", &linear);
    library.impl("_scaled_dot_product_fused_attention_overrideable_backward", &composed_attention_backward);
}

}  // namespace dipu
