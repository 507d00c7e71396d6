// Derivatives that torch does not have of an operator which the device does at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace dipu {

// The cells of recurrent layers, of operators that torch differentiates in each way; torch's signatures.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias);
std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                            const at::Tensor& hx, const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& hidden_bias);

// Whether forward-mode differentiation has given the tensor a tangent.
inline bool has_tangent(const at::Tensor& tensor) { return tensor.defined() && tensor._fw_grad(/*level=*/0).defined(); }
inline bool has_tangent(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && has_tangent(*tensor); }

}  // namespace dipu
