// The debug features of operators, switched in a running process: dump, compare with the CPU, synchronize, force the fallback.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string>
#include <vector>

#include "export.h"
#include "wrapper/control.h"

namespace dipu {

// Runs an operator whose control byte is not zero.
void interpose_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Turns `bit` on for the overloads that a list names (NamePatterns) and off for all others; an empty list names none. Forcing reaches
// operators that torch composes, too. Returns the matches. Throws c10::Error for a malformed expression.
DIPU_API std::vector<std::string> set_control(const std::string& list, ControlBit bit);

}  // namespace dipu
