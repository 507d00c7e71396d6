// Comparing an operator's results on the device with torch's own on the CPU, from the same inputs.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

namespace dipu {

// Copies of the arguments on the CPU: tensors, lists of tensors, devices.
torch::jit::Stack on_cpu(const torch::jit::Stack& arguments);

// Runs the operator on `reference` and compares returns and written arguments. `results` ends with the device's returns.
void compare_with_cpu(const c10::OperatorHandle& op, const std::string& name, const torch::jit::Stack& arguments,
                      const torch::jit::Stack& results, torch::jit::Stack reference);

}  // namespace dipu
