// The boxed CPU fallback with its counters.
#include "fallback.h"

#include <ATen/core/Generator.h>
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "device.h"
#include "device_api.h"
#include "fallback_outputs.h"
#include "generator.h"
#include "library.h"
#include "settings.h"
#include "substitute.h"
#include "wrapper/status.h"

namespace dipu {
namespace {

struct Counters {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, std::int64_t> counts;  // operator, cause
    std::set<std::string> logged;
    std::set<std::string> allowed;
    bool strict = settings().strict_fallback;
};

Counters& counters() {
    static Counters& value = *new Counters;
    return value;
}

// Set by a wrapper or the interposer just before it redispatches here.
thread_local std::string pending_cause;

std::string take_cause() {
    std::string cause = std::exchange(pending_cause, {});
    return cause.empty() ? "no kernel" : cause;
}

const char* meaning(diopiError_t status) {
    switch (status) {
        case diopiDtypeNotSupported:
            return "dtype not supported";
        case diopiForceFallbackToCPU:
            return "forced by the vendor";
        case diopiNoImplement:
            return "not implemented";
        case diopi5DNotSupported:
            return "5-d not supported";
        default:
            return nullptr;
    }
}

bool is_random(const c10::OperatorHandle& op) {
    const auto& tags = op.getTags();
    return std::find(tags.begin(), tags.end(), at::Tag::nondeterministic_seeded) != tags.end();
}

c10::DeviceIndex device_of(const torch::jit::Stack& stack, std::size_t begin) {
    for (std::size_t index = begin; index < stack.size(); ++index) {
        if (stack[index].isTensor() && stack[index].toTensor().defined() && stack[index].toTensor().is_privateuseone()) {
            return stack[index].toTensor().device().index();
        }
    }
    return current_device();
}

// CPU kernels take only CPU generators; a random operator that was given none draws from the device's default one, so that
// torch.dipu.manual_seed governs it.
void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t begin = stack.size() - arguments.size();
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        c10::IValue& value = stack[begin + index];
        if (value.isGenerator()) {
            if (value.toGenerator().device().is_privateuseone()) {
                value = cpu_twin(value.toGenerator());
            }
        } else if (value.isNone() && arguments[index].name() == "generator" && is_random(op)) {
            value = cpu_twin(default_generator(device_of(stack, begin)));
        }
    }
}

}  // namespace

bool refuse(const char* cause) noexcept {
    pending_cause = cause;
    return false;
}

void count_fallback(const std::string& operator_name) {
    const std::string cause = take_cause();
    Counters& c = counters();
    bool log = false;
    {
        const std::lock_guard<std::mutex> lock(c.mutex);
        TORCH_CHECK_NOT_IMPLEMENTED(!c.strict || c.allowed.count(operator_name) != 0, operator_name,
                                    " would fall back to the CPU (", cause, "), which strict mode forbids; allow it with "
                                    "torch.dipu.fallback.allow('", operator_name, "')");
        c.counts[{operator_name, cause}] += 1;
        log = settings().log_fallback && c.logged.insert(operator_name).second;
    }
    if (log) {
        std::fprintf(stderr, "dipu: %s falls back to the CPU: %s\n", operator_name.c_str(), cause.c_str());
    }
}

std::string overload_name(const c10::OperatorHandle& op) {
    const c10::OperatorName& name = op.operator_name();
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void fallback_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    count_fallback(overload_name(op));
    replace_generators(op, *stack);
    const c10::OperatorHandle on_cpu = cpu_operator(op, *stack);
    const std::vector<FallbackOutput> outputs = take_outputs(on_cpu, *stack);
    at::native::cpu_fallback(on_cpu, stack, /*error_on_views=*/true);
    give_outputs(outputs, on_cpu, *stack);
}

std::vector<FallbackCount> fallback_report() {
    Counters& c = counters();
    std::vector<FallbackCount> report;
    {
        const std::lock_guard<std::mutex> lock(c.mutex);
        for (const auto& [key, count] : c.counts) {
            report.push_back({key.first, key.second, count});
        }
    }
    std::stable_sort(report.begin(), report.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
    return report;
}

void reset_fallbacks() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().counts.clear();
}

void set_strict_fallback(bool strict) {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().strict = strict;
}

bool strict_fallback() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    return counters().strict;
}

void set_allowed_fallbacks(std::set<std::string> allowed) {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().allowed = std::move(allowed);
}

std::set<std::string> allowed_fallbacks() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    return counters().allowed;
}

bool refused(diopiError_t status, const char* function) {
    const char* const reason = meaning(status);
    TORCH_CHECK(reason != nullptr, function, " failed with status ", static_cast<int>(status), ": ", last_operator_error());
    pending_cause = std::string(function) + ": " + reason;
    return false;
}

void register_fallback() {
    for (const c10::DispatchKey key : {c10::DispatchKey::PrivateUse1, c10::DispatchKey::PrivateUse2}) {
        new_library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
    }
}

}  // namespace dipu
