// Part of the compatibility layer for C++ programs that were written for DIPU; see docs/moving-over.md.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <diopi/diopirt.h>

#include <optional>

#include "csrc_dipu/diopirt/context.h"
#include "csrc_dipu/runtime/device/deviceapis.h"

namespace dipu::diopi_helper {

// A handle is the address of a tensor that outlives the call; an undefined tensor, or none, is a null handle.
diopiTensorHandle_t toDiopiTensorHandle(at::Tensor& tensor);
diopiConstTensorHandle_t toDiopiTensorHandle(const at::Tensor& tensor);
diopiConstTensorHandle_t toDiopiTensorHandle(const std::optional<at::Tensor>& tensor);

// Throws c10::Error for a complex number, which has no C form.
diopiScalar_t toDiopiScalar(const at::Scalar& scalar);

}  // namespace dipu::diopi_helper
