// The boxed CPU fallback with its counters.
#include "fallback.h"

#include <ATen/core/Generator.h>
#include <ATen/native/CPUFallback.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/device_api.h"
#include "fallback_outputs.h"
#include "generated.h"
#include "host_copies.h"
#include "device/generator.h"
#include "device/vendor_library.h"
#include "library.h"
#include "name_patterns.h"
#include "refusal.h"
#include "registry.h"
#include "settings.h"
#include "substitute.h"
#include "wrapper/arguments.h"
#include "wrapper/context.h"
#include "wrapper/status.h"
#include "wrapper/unusual.h"

namespace dipu {
namespace {

struct Counters {
    std::mutex mutex;
    std::map<std::pair<std::string, std::string>, FallbackCount> counts;  // operator, cause
    std::set<std::string> logged;
    FallbackPolicy policy{settings().strict_fallback, {}, {}};
    NamePatterns allowed{""};
    NamePatterns denied{""};
};

Counters& counters() {
    static Counters& value = *new Counters;
    return value;
}

// Set by a wrapper or the interposer just before it redispatches here.
thread_local std::string pending_cause;

// Set with the cause where torch's own kernel is asked about the arguments, with what is thrown if it takes them, if that is an error.
struct Question {
    bool asked = false;
    std::exception_ptr failure;
};
thread_local Question pending_question;

// Where neither a wrapper nor the interposer told one.
std::string untold_cause(const std::string& operator_name) {
    static const auto& drifted = *[] {
        auto* const reasons = new std::map<std::string, std::string>;
        for (const DriftedOperator& each : drifted_operators()) {
            reasons->emplace("aten::" + each.name, "drifted: " + each.reason);
        }
        return reasons;
    }();
    const auto found = drifted.find(operator_name);
    if (found != drifted.end()) {
        return found->second;
    }
    return has_wrapper(operator_name) ? "no function for these arguments" : "no kernel";
}

std::string take_cause(const std::string& operator_name) {
    std::string cause = std::exchange(pending_cause, {});
    return cause.empty() ? untold_cause(operator_name) : cause;
}

const char* meaning(diopiError_t status) {
    switch (status) {
        case diopiDtypeNotSupported: return "dtype not supported";
        case diopiForceFallbackToCPU: return "forced by the vendor";
        case diopiNoImplement: return "not implemented";
        case diopi5DNotSupported: return "5-d not supported";
        default: return nullptr;
    }
}

// Where results belong if a number of the host comes first, whose device torch's fallback would give them; nothing else.
std::optional<c10::Device> device_beside_number(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
    const auto is_tensor = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); };
    const auto first = std::find_if(arguments.begin(), arguments.end(), is_tensor);
    if (op.schema().is_mutable() || first == arguments.end() || !first->toTensor().is_cpu() ||
        first->toTensor().dim() != 0) {
        return std::nullopt;
    }
    const auto found = std::find_if(first, arguments.end(), [&](const c10::IValue& value) {
        return is_tensor(value) && value.toTensor().is_privateuseone();
    });
    return found == arguments.end() ? std::nullopt : std::optional(found->toTensor().device());
}

c10::DeviceIndex device_of(const torch::jit::Stack& stack, std::size_t begin) {
    for (std::size_t index = begin; index < stack.size(); ++index) {
        if (stack[index].isTensor() && stack[index].toTensor().defined() &&
            stack[index].toTensor().is_privateuseone()) {
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

std::exception_ptr failure(const char* function, diopiError_t status, Raises raises) {
    try {
        const std::string text =
            c10::str(function, " failed with status ", static_cast<int>(status), ": ", last_operator_error());
        TORCH_CHECK_INDEX(raises != Raises::kIndexError || status != diopiErrorOccurred, text);
        TORCH_CHECK(false, text);
    } catch (...) {
        return std::current_exception();
    }
}

// All tensors, alone and in lists.
std::vector<at::Tensor> tensors_of(c10::ArrayRef<c10::IValue> values) {
    std::vector<at::Tensor> found;
    const auto add = [&](const std::optional<at::Tensor>& tensor) {
        if (tensor.has_value() && tensor->defined()) {
            found.push_back(*tensor);
        }
    };
    for (const c10::IValue& value : values) {
        if (value.isTensor()) {
            add(value.toTensor());
        } else if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) {
                add(tensor);
            }
        } else if (value.isOptionalTensorList()) {
            for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
                add(tensor);
            }
        }
    }
    return found;
}

// Whether the operator writes one place twice, or memory that another of its tensors has: copied one by one they would share none.
bool writes_shared_memory(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    if (!op.schema().is_mutable()) {
        return false;
    }
    const auto& arguments = op.schema().arguments();
    const auto values = torch::jit::last(stack, arguments.size());
    std::vector<at::Tensor> written;
    std::map<const c10::StorageImpl*, int> users;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const bool is_written = arguments[index].alias_info() != nullptr && arguments[index].alias_info()->isWrite();
        for (const at::Tensor& tensor : tensors_of(values[index])) {
            if (tensor.is_privateuseone() && tensor.has_storage()) {
                users[unusual_detail::memory(tensor)] += 1;
                if (is_written) {
                    written.push_back(tensor);
                }
            }
        }
    }
    return std::any_of(written.begin(), written.end(), [&](const at::Tensor& tensor) {
        return users[unusual_detail::memory(tensor)] > 1 || overlaps_itself(tensor);
    });
}

bool has_tag(const c10::OperatorHandle& op, at::Tag tag) {
    const auto& tags = op.getTags();
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

// Throws in torch's words where the arguments of such an operator lie on two devices, which copies on the CPU would not tell.
void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    static const auto& names = *new std::set<std::string>(one_device_operators().begin(), one_device_operators().end());
    if (names.count(overload_name(op).substr(std::string_view("aten::").size())) == 0) {
        return;
    }
    std::optional<c10::Device> device;
    const auto tensors = tensors_of(torch::jit::last(stack, op.schema().arguments().size()));
    for (const at::Tensor& tensor : tensors) {
        if (tensor.is_privateuseone() && !device.has_value()) {
            device = tensor.device();
        }
    }
    // As in torch's own kernels, a number may lie on the CPU where each element is computed for itself.
    const bool takes_numbers = has_tag(op, at::Tag::pointwise);
    for (const at::Tensor& tensor : tensors) {
        if (!(takes_numbers && is_host_scalar(tensor))) {
            check_device(tensor, device.value_or(tensor.device()));
        }
    }
}

// The call in torch's own kernel. Where it is asked why a function failed, it has the say only if it knows these arguments to be wrong.
HostCopies asked_torch(const c10::OperatorHandle& op, torch::jit::Stack& stack, const std::exception_ptr& failure) {
    std::optional<HostCopies> copies;
    try {
        copies.emplace(op, stack);
        copies->run(op, stack);
    } catch (const c10::NotImplementedError&) {
        if (failure == nullptr) {
            throw;
        }
    } catch (...) {
        if (failure == nullptr || copies.has_value()) {
            throw;
        }
    }
    if (failure != nullptr) {
        std::rethrow_exception(failure);
    }
    return *copies;
}

}  // namespace

bool refuse(const char* cause) noexcept {
    pending_cause = cause;
    return false;
}

bool ask_torch(const char* cause) noexcept {
    pending_question.asked = true;
    return refuse(cause);
}

void ask_of_failure() noexcept {
    pending_question = {true, std::current_exception()};
    pending_cause.clear();
}

void raise_failure() {
    const Question question = std::exchange(pending_question, {});
    if (question.failure != nullptr) {
        std::rethrow_exception(question.failure);
    }
}

FallbackRecord::FallbackRecord(std::string operator_name)
    : name_(std::move(operator_name)),
      cause_(take_cause(name_)),
      begin_(std::chrono::steady_clock::now()) {
    raise_failure();
    Counters& c = counters();
    bool log = false;
    {
        const std::lock_guard<std::mutex> lock(c.mutex);
        TORCH_CHECK_NOT_IMPLEMENTED(!c.denied.match(name_), name_, " would fall back to the CPU (", cause_,
                                    "), which torch.dipu.fallback.deny forbids");
        TORCH_CHECK_NOT_IMPLEMENTED(!c.policy.strict || c.allowed.match(name_), name_, " would fall back to the CPU (",
                                    cause_, "), which strict mode forbids; allow it with torch.dipu.fallback.allow('",
                                    name_, "')");
        log = settings().log_fallback && c.logged.insert(name_).second;
    }
    if (log) {
        std::fprintf(stderr, "dipu: %s falls back to the CPU: %s\n", name_.c_str(), cause_.c_str());
    }
}

FallbackRecord::~FallbackRecord() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
    Counters& c = counters();
    const std::lock_guard<std::mutex> lock(c.mutex);
    FallbackCount& row = c.counts[{name_, cause_}];
    row.operator_name = name_;
    row.cause = cause_;
    row.count += 1;
    row.bytes += bytes_;
    row.seconds += taken.count();
}

int64_t device_bytes(c10::ArrayRef<c10::IValue> values) {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors_of(values)) {
        bytes += tensor.is_privateuseone() ? static_cast<int64_t>(tensor.nbytes()) : 0;
    }
    return bytes;
}

std::string overload_name(const c10::OperatorHandle& op) {
    const c10::OperatorName& name = op.operator_name();
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool is_random(const c10::OperatorHandle& op) { return has_tag(op, at::Tag::nondeterministic_seeded); }

void fallback_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const Question question = std::exchange(pending_question, {});
    check_devices(op, *stack);
    if (question.asked && run_on_host(op, *stack)) {
        if (question.failure != nullptr) {
            std::rethrow_exception(question.failure);
        }
        const FallbackRecord record(overload_name(op));
        return;
    }
    if (question.asked || writes_shared_memory(op, *stack)) {
        replace_generators(op, *stack);
        const c10::OperatorHandle on_cpu = cpu_operator(op, *stack);
        // What torch refuses is no fallback.
        const int64_t given = device_bytes(torch::jit::last(*stack, on_cpu.schema().arguments().size()));
        const HostCopies copies = asked_torch(on_cpu, *stack, question.failure);
        FallbackRecord record(overload_name(op));
        copies.give_back(on_cpu, *stack);
        record.add_bytes(given + device_bytes(torch::jit::last(*stack, on_cpu.schema().returns().size())));
        return;
    }
    FallbackRecord record(overload_name(op));
    const std::size_t arguments = op.schema().arguments().size();
    record.add_bytes(device_bytes(torch::jit::last(*stack, arguments)));
    replace_generators(op, *stack);
    const std::optional<c10::Device> device = device_beside_number(op, *stack);
    const c10::OperatorHandle on_cpu = cpu_operator(op, *stack);
    const std::vector<FallbackOutput> outputs = take_outputs(on_cpu, *stack);
    if (!run_on_host(op, *stack)) {
        at::native::cpu_fallback(on_cpu, stack, /*error_on_views=*/true);
    }
    give_outputs(outputs, on_cpu, *stack);
    for (std::size_t back = op.schema().returns().size(); device.has_value() && back > 0; --back) {
        c10::IValue& result = torch::jit::peek(*stack, 0, back);
        if (result.isTensor() && result.toTensor().defined()) {
            result = result.toTensor().to(*device);
        }
    }
    record.add_bytes(device_bytes(torch::jit::last(*stack, op.schema().returns().size())));
}

std::vector<FallbackCount> fallback_report() {
    Counters& c = counters();
    std::vector<FallbackCount> report;
    {
        const std::lock_guard<std::mutex> lock(c.mutex);
        for (const auto& [key, row] : c.counts) {
            report.push_back(row);
        }
    }
    std::stable_sort(report.begin(), report.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
    return report;
}

void reset_fallbacks() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().counts.clear();
}

void set_fallback_policy(FallbackPolicy policy) {
    NamePatterns allowed(policy.allowed);
    NamePatterns denied(policy.denied);
    Counters& c = counters();
    const std::lock_guard<std::mutex> lock(c.mutex);
    c.policy = std::move(policy);
    c.allowed = std::move(allowed);
    c.denied = std::move(denied);
}

FallbackPolicy fallback_policy() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    return counters().policy;
}

bool asks_for_fallback(diopiError_t status) noexcept { return meaning(status) != nullptr; }

bool refused(diopiError_t status, const char* function, Raises raises) {
    if (const char* const reason = meaning(status)) {
        const bool missing = status == diopiNoImplement && vendor_symbol(function) == nullptr;
        pending_cause = missing ? std::string("no ") + function : std::string(function) + ": " + reason;
        return false;
    }
    pending_question = {true, failure(function, status, raises)};
    pending_cause.clear();
    return false;
}

void raise_failed_request(diopiContextHandle_t context, diopiError_t status, const char* function) {
    if (context->failure == nullptr || meaning(status) != nullptr) {
        return;
    }
    try {
        std::rethrow_exception(std::exchange(context->failure, nullptr));
    } catch (c10::Error& error) {
        error.add_context(c10::str("It was asked for by ", function, "."));
        throw;
    }
}

void register_fallback() {
    for (const c10::DispatchKey key : {c10::DispatchKey::PrivateUse1, c10::DispatchKey::PrivateUse2}) {
        new_library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&fallback_boxed>());
    }
}

}  // namespace dipu
