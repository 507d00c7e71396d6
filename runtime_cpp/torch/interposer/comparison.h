// Results of the device held against the CPU's, call by call.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

// The worst element of a result that is not as the CPU has it.
struct Mismatch {
    std::string operator_name;        // e.g. "aten::mul.Tensor"
    std::string value;                // e.g. "output 0", "written self", "harmed other"
    std::string what;                 // e.g. "f32[2, 3] strides [3, 1] differs", or how dtype or shape differ
    std::vector<int64_t> index;  // of the worst element; empty where there is none
    double device = 0;
    double cpu = 0;
    double error = 0;      // absolute
    double tolerance = 0;  // that was allowed there
    double ulp = 0;        // the error in units of the last place
    int64_t wrong = 0;  // elements beyond tolerance
    int64_t elements = 0;
};

// One line with all of it.
DIPU_API std::string text_of(const Mismatch& mismatch);

struct Comparison {
    std::string operator_name;
    int64_t runs = 0;
    int64_t differences = 0;  // runs with a mismatch
    int64_t skipped = 0;      // runs that could not be compared: the CPU cannot run the operator, or it is random
    Mismatch worst;
};

DIPU_API std::vector<Comparison> comparison_report();
DIPU_API void reset_comparisons();

enum class OnMismatch { kLog, kRaise, kDump };
DIPU_API void set_on_mismatch(OnMismatch action);

// What a dump gets: the operator, its arguments as they were before the call on the CPU, and the mismatch.
using MismatchHandler = std::function<void(const c10::OperatorHandle&, const torch::jit::Stack&, const Mismatch&)>;
DIPU_API void set_mismatch_handler(MismatchHandler handler);

// Runs the operator on the device and, with copies of its arguments, on the CPU.
void run_compared(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace dipu
