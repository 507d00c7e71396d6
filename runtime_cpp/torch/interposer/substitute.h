// Operators that exist for devices only, and what the CPU runs in their place.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <array>

namespace dipu {

// Overloads that torch offers to devices, whose own kernel only says "not implemented".
inline constexpr std::array<const char*, 2> kDeviceOnly = {"convolution_overrideable",
                                                           "convolution_backward_overrideable"};

// The operator to run on the CPU for `op`, with the arguments on the stack changed to fit; `op` itself for all others.
c10::OperatorHandle cpu_operator(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// Runs what the CPU has no kernel at all for, with the CPU's other operators; false where it has one.
bool run_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace dipu
