// The fallback to the CPU: serves every operator without a kernel, counts each use, and can be made an error.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

// Runs the operator on the CPU: inputs are copied there, results back.
void fallback_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// ex) "aten::add.Tensor"
std::string overload_name(const c10::OperatorHandle& op);

// Counts a fallback that a kernel of the backend did itself; raises in strict mode.
void count_fallback(const std::string& operator_name);

struct FallbackCount {
    std::string operator_name;  // ex) "aten::histc"
    std::string cause;          // ex) "no kernel", "diopiHistc: dtype not supported"
    std::int64_t count;
};

// Most frequent first.
DIPU_API std::vector<FallbackCount> fallback_report();
DIPU_API void reset_fallbacks();

// Strict: an operator that would fall back raises, unless `allowed` names it.
DIPU_API void set_strict_fallback(bool strict);
DIPU_API bool strict_fallback();
DIPU_API void set_allowed_fallbacks(std::set<std::string> allowed);
DIPU_API std::set<std::string> allowed_fallbacks();

}  // namespace dipu
