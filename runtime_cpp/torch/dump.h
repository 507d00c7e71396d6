// Printing the arguments of an operator.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace dipu {

// One line per argument on stderr; level 1 shapes and dtypes, 2 and the range of the values, 3 and the values.
void dump_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack, int level);

}  // namespace dipu
