// Prints the arguments of operators, or writes a line of JSON for each, switched in a running process.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <string>

#include "export.h"

namespace dipu {

// 1 names of operators, 2 and their arguments (dtype, sizes, strides, device; values of numbers), 3 and the tensors' values.
struct DumpStyle {
    int level = 1;
    bool json = false;
    std::string path;  // appended to; stderr where empty
};

DIPU_API void set_dump_style(DumpStyle style);

// `stack` ends with the arguments of `op`.
void dump_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

}  // namespace dipu
