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

// Turns `bit` on for the overloads whose whole name matches the regular expression and off for all others; an empty pattern
// matches none. Returns the matches. Throws c10::Error for a malformed expression.
DIPU_API std::vector<std::string> set_control(const std::string& pattern, ControlBit bit);

// 1 shapes and dtypes, 2 and the range of the values, 3 and the values.
DIPU_API void set_dump_level(int level);

struct Comparison {
    std::string operator_name;
    std::int64_t runs;
    std::int64_t differences;
    double largest;  // absolute difference
};

DIPU_API std::vector<Comparison> comparison_report();
DIPU_API void reset_comparisons();

// A difference is an error rather than a line on stderr.
DIPU_API void set_comparison_raises(bool raises);

}  // namespace dipu
