// The fused cells of LSTM and GRU, which torch chooses on a device and the CPU lacks, written with the device's operators.
//
// The layouts of the workspaces are this file's own: torch only hands them from the forward to the backward functions.
#include "differentiation.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include <tuple>
#include <vector>

#include "library.h"

namespace dipu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

bool given(const OptionalTensor& tensor) { return tensor.has_value() && tensor->defined(); }

at::Tensor with_bias(const at::Tensor& gates, const OptionalTensor& bias) {
    return given(bias) ? gates.add(*bias) : gates;
}

at::Tensor bias_gradient(const at::Tensor& gates, bool has_bias) { return has_bias ? gates.sum(0) : at::Tensor(); }

// Derivatives by the outputs of the activations.
at::Tensor sigmoid_slope(const at::Tensor& y) { return y.mul(y.neg().add(1)); }
at::Tensor tanh_slope(const at::Tensor& y) { return y.mul(y).neg().add(1); }

// The gates of each row stand side by side, and the state has as many numbers as one of them.
void check_gates(const char* name, const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                 const at::Tensor& state, const OptionalTensor& input_bias, const OptionalTensor& hidden_bias,
                 int64_t gates) {
    const at::TensorArg input(input_gates, "input_gates", 1), hidden(hidden_gates, "hidden_gates", 2),
        previous(state, "prev_hidden", 5);
    at::checkDim(name, input, 2);
    at::checkSameSize(name, input, hidden);
    at::checkSize(name, previous, {input_gates.size(0), input_gates.size(1) / gates});
    at::checkSameType(name, input, hidden);
    at::checkSameType(name, input, previous);
    for (const auto& [bias, place] : {std::pair{&input_bias, 3}, {&hidden_bias, 4}}) {
        if (given(*bias)) {
            const at::TensorArg arg(**bias, place == 3 ? "input_bias" : "hidden_bias", place);
            at::checkDim(name, arg, 1);
            at::checkNumel(name, arg, input_gates.size(1));
        }
    }
    TORCH_CHECK(input_gates.size(1) % gates == 0, name, ": ", input_gates.size(1), " columns are no ", gates, " gates");
}

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx, const OptionalTensor& input_bias,
                                                         const OptionalTensor& hidden_bias) {
    check_gates("_thnn_fused_lstm_cell", input_gates, hidden_gates, cx, input_bias, hidden_bias, 4);
    const at::Tensor sums = with_bias(input_gates, input_bias).add(with_bias(hidden_gates, hidden_bias));
    const std::vector<at::Tensor> parts = sums.chunk(4, 1);
    const at::Tensor in = parts[0].sigmoid();
    const at::Tensor forget = parts[1].sigmoid();
    const at::Tensor cell = parts[2].tanh();
    const at::Tensor out = parts[3].sigmoid();
    at::Tensor cy = forget.mul(cx).add(in.mul(cell));
    at::Tensor hy = out.mul(cy.tanh());
    return {std::move(hy), std::move(cy), at::cat({in, forget, cell, out}, 1)};
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const OptionalTensor& grad_hy,
                                                                  const OptionalTensor& grad_cy, const at::Tensor& cx,
                                                                  const at::Tensor& cy, const at::Tensor& workspace,
                                                                  bool has_bias) {
    if (!given(grad_hy) && !given(grad_cy)) {
        return {};
    }
    const std::vector<at::Tensor> parts = workspace.chunk(4, 1);
    const at::Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
    const at::Tensor squashed = cy.tanh();
    const at::Tensor grad_hidden = given(grad_hy) ? *grad_hy : at::zeros_like(cy);
    at::Tensor grad_cell = grad_hidden.mul(out).mul(tanh_slope(squashed));
    if (given(grad_cy)) {
        grad_cell = grad_cell.add(*grad_cy);
    }
    at::Tensor grad_gates =
        at::cat({grad_cell.mul(cell).mul(sigmoid_slope(in)), grad_cell.mul(cx).mul(sigmoid_slope(forget)),
                 grad_cell.mul(in).mul(tanh_slope(cell)), grad_hidden.mul(squashed).mul(sigmoid_slope(out))},
                1);
    at::Tensor grad_bias = bias_gradient(grad_gates, has_bias);
    return {std::move(grad_gates), grad_cell.mul(forget), std::move(grad_bias)};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const OptionalTensor& input_bias,
                                            const OptionalTensor& hidden_bias) {
    check_gates("_thnn_fused_gru_cell", input_gates, hidden_gates, hx, input_bias, hidden_bias, 3);
    const std::vector<at::Tensor> from_input = with_bias(input_gates, input_bias).chunk(3, 1);
    const std::vector<at::Tensor> from_hidden = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
    const at::Tensor reset = from_input[0].add(from_hidden[0]).sigmoid();
    const at::Tensor update = from_input[1].add(from_hidden[1]).sigmoid();
    const at::Tensor candidate = from_input[2].add(reset.mul(from_hidden[2])).tanh();
    at::Tensor hy = candidate.add(update.mul(hx.sub(candidate)));
    return {std::move(hy), at::cat({reset, update, candidate, hx, from_hidden[2]}, 1)};
}

namespace {

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(const at::Tensor& grad_hy,
                                                                                         const at::Tensor& workspace,
                                                                                         bool has_bias) {
    const std::vector<at::Tensor> parts = workspace.chunk(5, 1);
    const at::Tensor &reset = parts[0], &update = parts[1], &candidate = parts[2], &hx = parts[3], &hidden = parts[4];
    const at::Tensor grad_update = grad_hy.mul(hx.sub(candidate)).mul(sigmoid_slope(update));
    const at::Tensor grad_candidate = grad_hy.mul(update.neg().add(1)).mul(tanh_slope(candidate));
    const at::Tensor grad_reset = grad_candidate.mul(hidden).mul(sigmoid_slope(reset));
    at::Tensor grad_input = at::cat({grad_reset, grad_update, grad_candidate}, 1);
    at::Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_candidate.mul(reset)}, 1);
    at::Tensor input_bias = bias_gradient(grad_input, has_bias);
    at::Tensor hidden_bias = bias_gradient(grad_hidden, has_bias);
    return {std::move(grad_input), std::move(grad_hidden), grad_hy.mul(update), std::move(input_bias),
            std::move(hidden_bias)};
}

}  // namespace

void register_recurrent(torch::Library& library) {
    library.impl("_thnn_fused_lstm_cell", &lstm_cell);
    library.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
    library.impl("_thnn_fused_gru_cell", &gru_cell);
    library.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

}  // namespace dipu
