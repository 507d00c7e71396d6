// Half types as float32: steps and sums of several roundings are taken in a wider type, and rounded once when written.
#pragma once

#include <ATen/OpMathType.h>

#include <optional>

#include "aten/call.h"

namespace diopi::aten {

inline at::Tensor wide(const at::Tensor& value) { return value.to(at::toOpMathType(value.scalar_type())); }
inline at::Tensor wide(diopiConstTensorHandle_t handle) { return wide(tensor(handle)); }

inline std::optional<at::Tensor> maybe_wide(diopiConstTensorHandle_t handle) {
    return handle == nullptr ? std::nullopt : std::optional<at::Tensor>(wide(handle));
}

// Contiguous, too: some kernels read their small inputs without a look at the strides.
inline at::Tensor wide_lines(diopiConstTensorHandle_t handle) { return wide(handle).contiguous(); }
inline at::Tensor maybe_lines(diopiConstTensorHandle_t handle) {
    return handle == nullptr ? at::Tensor() : wide_lines(handle);  // undefined for a null handle
}

}  // namespace diopi::aten
