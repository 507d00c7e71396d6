// The fallback to the CPU: serves every operator without a kernel, counts each use, and can be made an error.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

// Runs the operator on the CPU: inputs are copied there, results back.
void fallback_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// e.g. "aten::add.Tensor"
std::string overload_name(const c10::OperatorHandle& op);

// Whether it draws random numbers.
bool is_random(const c10::OperatorHandle& op);

// One fallback: refused where the policy forbids it, counted with its cause, bytes and time when it ends.
class FallbackRecord {
public:
    // Throws c10::NotImplementedError where strict mode or a denial forbids it.
    explicit FallbackRecord(std::string operator_name);
    ~FallbackRecord();
    FallbackRecord(const FallbackRecord&) = delete;
    FallbackRecord& operator=(const FallbackRecord&) = delete;

    // What was copied between device and host.
    void add_bytes(int64_t bytes) { bytes_ += bytes; }

private:
    std::string name_;
    std::string cause_;
    int64_t bytes_ = 0;
    std::chrono::steady_clock::time_point begin_;
};

// The bytes of the device's tensors among `values`.
int64_t device_bytes(c10::ArrayRef<c10::IValue> values);

struct FallbackCount {
    std::string operator_name;  // e.g. "aten::histc"
    std::string cause;          // e.g. "no kernel", "forced", "drifted: ...", "diopiHistc: dtype not supported"
    int64_t count = 0;
    int64_t bytes = 0;  // copied between device and host
    double seconds = 0;      // on the host, copies included
};

// Most frequent first.
DIPU_API std::vector<FallbackCount> fallback_report();
DIPU_API void reset_fallbacks();

// Which operators may fall back; lists as NamePatterns reads them.
struct FallbackPolicy {
    bool strict = false;  // none may, but for those allowed
    std::string allowed;
    std::string denied;  // these never may
};
DIPU_API void set_fallback_policy(FallbackPolicy policy);
DIPU_API FallbackPolicy fallback_policy();

}  // namespace dipu
