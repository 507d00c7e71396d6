// How near two tensors are, and how near they must be.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "comparison.h"
#include "wrapper/control.h"

namespace dipu {

// The first reason why `device` is not what `exact` says, on the CPU and in float64 if `dtype` is floating; nullopt if it agrees. `terms` is how many
// numbers one element is made of: roundings grow with its square root.
std::optional<Mismatch> mismatch(const at::Tensor& device, const at::Tensor& exact, c10::ScalarType dtype,
                                 const Judgement& judgement, double terms);

// Whether the tensor has the same bits as before, NaN included.
bool is_unharmed(const at::Tensor& now, const at::Tensor& before);

}  // namespace dipu
