// Runs an operator on both sides and keeps the report.
#include "comparison.h"

#include <ATen/core/List.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <sstream>
#include <unordered_map>

#include "closeness.h"
#include "fallback.h"
#include "registry.h"
#include "settings.h"
#include "substitute.h"

namespace dipu {
namespace {

OnMismatch from_settings() {
    const std::string& action = settings().on_mismatch;
    TORCH_CHECK_VALUE(action == "log" || action == "raise" || action == "dump",
                      "DIPU_AUTOCOMPARE_ON_MISMATCH is log, raise or dump, not '", action, "'");
    return action == "raise" ? OnMismatch::kRaise : action == "dump" ? OnMismatch::kDump : OnMismatch::kLog;
}

struct Report {
    std::mutex mutex;
    std::map<std::string, Comparison> rows;
    OnMismatch action = from_settings();
    MismatchHandler handler;
};

Report& report() {
    static Report& value = *new Report;
    return value;
}

// Copies on the CPU; a tensor that stands twice among the arguments stands twice among the copies.
class Copies {
public:
    explicit Copies(bool wide) : wide_(wide) {}

    c10::IValue operator()(const c10::IValue& value) {
        if (value.isTensor()) {
            return copy(value.toTensor());
        }
        if (value.isTensorList()) {
            c10::List<at::Tensor> list;
            for (const at::Tensor& tensor : value.toTensorVector()) {
                list.push_back(copy(tensor));
            }
            return list;
        }
        if (value.isOptionalTensorList()) {
            c10::List<std::optional<at::Tensor>> list;
            for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
                list.push_back(tensor.has_value() ? std::optional<at::Tensor>(copy(*tensor)) : std::nullopt);
            }
            return list;
        }
        return value.isDevice() && value.toDevice().is_privateuseone() ? c10::IValue(c10::Device(c10::kCPU)) : value;
    }

private:
    at::Tensor copy(const at::Tensor& tensor) {
        if (!tensor.defined()) {
            return tensor;
        }
        at::Tensor& kept = copies_[tensor.unsafeGetTensorImpl()];
        if (!kept.defined()) {
            const at::Tensor host = tensor.detach().cpu().resolve_conj().resolve_neg();
            const bool widen =
                wide_ && (c10::isFloatingType(host.scalar_type()) || host.scalar_type() == c10::kComplexFloat);
            const c10::ScalarType dtype = !widen              ? host.scalar_type()
                                          : host.is_complex() ? c10::kComplexDouble
                                                              : c10::kDouble;
            kept = host.to(dtype, false, /*copy=*/true);
        }
        return kept;
    }

    bool wide_;
    std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
};

torch::jit::Stack copied(const torch::jit::Stack& values, bool wide) {
    Copies copy(wide);
    torch::jit::Stack copies;
    for (const c10::IValue& value : values) {
        copies.push_back(copy(value));
    }
    return copies;
}

struct Reference {
    torch::jit::Stack arguments;  // written ones as the CPU left them
    torch::jit::Stack results;
    bool ran = false;
};

Reference run_reference(const c10::OperatorHandle& op, const torch::jit::Stack& before, bool wide) {
    Reference reference;
    reference.arguments = copied(before, wide);
    reference.results = reference.arguments;
    try {
        const c10::OperatorHandle on_cpu = cpu_operator(op, reference.results);
        if (!run_on_host(op, reference.results)) {
            on_cpu.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &reference.results);
        }
        reference.ran = true;
    } catch (const c10::Error&) {
        reference.ran = false;  // no kernel, or not in this dtype
    }
    return reference;
}

// Batch normalization writes the running statistics, which torch's schema keeps to itself.
bool is_written(const std::string& name, const c10::Argument& argument) {
    return (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) ||
           writes_silently(name, argument.name());
}

void tensors_of(const c10::IValue& value, std::vector<at::Tensor>& found) {
    if (value.isTensor()) {
        found.push_back(value.toTensor());
    } else if (value.isTensorList()) {
        const auto list = value.toTensorVector();
        found.insert(found.end(), list.begin(), list.end());
    }
}

// How many numbers of the arguments one element of the results is made of, at most.
double terms_of(const torch::jit::Stack& arguments, const at::Tensor& result) {
    int64_t most = 1;
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : arguments) {
        tensors_of(value, tensors);
    }
    int64_t all = 0;
    for (const at::Tensor& tensor : tensors) {
        if (tensor.defined()) {
            most = std::max(most, tensor.numel());
            all += tensor.numel();
        }
    }
    const bool alone = tensors.size() > 0 && most == result.numel() &&
                       std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& t) {
                           return !t.defined() || t.sizes() == result.sizes() || t.numel() == 1;
                       });
    return alone ? 2.0 : static_cast<double>(std::max<int64_t>(all, 2));
}

// Compares value by value, and keeps the worst mismatch.
class Judge {
public:
    Judge(const Judgement& judgement, const torch::jit::Stack& arguments)
        : judgement_(judgement),
          arguments_(arguments) {}

    // `model` has the dtypes that the CPU gives for arguments as they are; `exact` may be wider.
    void compare(const c10::IValue& device, const c10::IValue& exact, const std::string& name) {
        std::vector<at::Tensor> found;
        std::vector<at::Tensor> wanted;
        tensors_of(device, found);
        tensors_of(exact, wanted);
        for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
            if (found[i].defined() && wanted[i].defined() && found[i].is_privateuseone()) {
                const bool widened = wanted[i].is_floating_point() || wanted[i].is_complex();
                const c10::ScalarType dtype = widened ? found[i].scalar_type() : wanted[i].scalar_type();
                keep(mismatch(found[i], wanted[i], dtype, judgement_, terms_of(arguments_, found[i])), name);
            }
        }
    }

    void check_unharmed(const c10::IValue& device, const c10::IValue& before, const std::string& name) {
        std::vector<at::Tensor> now;
        std::vector<at::Tensor> then;
        tensors_of(device, now);
        tensors_of(before, then);
        for (std::size_t i = 0; i < now.size(); ++i) {
            if (now[i].defined() && now[i].is_privateuseone() && !is_unharmed(now[i], then[i])) {
                Mismatch harm;
                std::ostringstream text;
                text << now[i].scalar_type() << now[i].sizes() << " was changed, though the operator only reads it";
                harm.what = text.str();
                harm.wrong = harm.elements = now[i].numel();
                harm.error = std::numeric_limits<double>::infinity();
                keep(harm, name);
            }
        }
    }

    const std::optional<Mismatch>& worst() const { return worst_; }

private:
    void keep(std::optional<Mismatch> found, const std::string& name) {
        if (found.has_value() && (!worst_.has_value() || found->error > worst_->error)) {
            found->value = name;
            worst_ = std::move(found);
        }
    }

    const Judgement& judgement_;
    const torch::jit::Stack& arguments_;
    std::optional<Mismatch> worst_;
};

// Whether some written tensor shares memory with `tensor`: then it may change.
bool is_shared(const at::Tensor& tensor, const std::vector<at::Tensor>& written) {
    return std::any_of(written.begin(), written.end(), [&](const at::Tensor& other) {
        return other.defined() && tensor.defined() && tensor.is_alias_of(other);
    });
}

std::optional<Mismatch> judge(const c10::OperatorHandle& op, const std::string& name,
                              const torch::jit::Stack& arguments, const torch::jit::Stack& before,
                              c10::ArrayRef<c10::IValue> results, const Reference& reference) {
    const auto& schema = op.schema();
    Judge judge(judgement_of(name), arguments);
    std::vector<at::Tensor> written;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        if (is_written(name, schema.arguments()[index])) {
            tensors_of(arguments[index], written);
        }
    }
    for (std::size_t index = 0; index < results.size() && index < reference.results.size(); ++index) {
        judge.compare(results[index], reference.results[index], "output " + std::to_string(index));
    }
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const std::string& argument = schema.arguments()[index].name();
        if (is_written(name, schema.arguments()[index])) {
            judge.compare(arguments[index], reference.arguments[index], "written " + argument);
        } else if (!(arguments[index].isTensor() && is_shared(arguments[index].toTensor(), written))) {
            judge.check_unharmed(arguments[index], before[index], "harmed " + argument);
        }
    }
    return judge.worst();
}

void conclude(const c10::OperatorHandle& op, const std::string& name, const torch::jit::Stack& before, bool compared,
              std::optional<Mismatch> found) {
    Report& r = report();
    OnMismatch action = OnMismatch::kLog;
    MismatchHandler handler;
    {
        const std::lock_guard<std::mutex> lock(r.mutex);
        Comparison& row = r.rows[name];
        row.operator_name = name;
        row.runs += 1;
        row.skipped += compared ? 0 : 1;
        if (found.has_value()) {
            found->operator_name = name;
            row.differences += 1;
            if (row.differences == 1 || found->error > row.worst.error) {
                row.worst = *found;
            }
        }
        action = r.action;
        handler = r.handler;
    }
    if (!found.has_value()) {
        return;
    }
    TORCH_CHECK(action != OnMismatch::kRaise, text_of(*found));
    std::fprintf(stderr, "dipu: %s\n", text_of(*found).c_str());
    if (action == OnMismatch::kDump && handler) {
        handler(op, before, *found);
    }
}

}  // namespace

std::string text_of(const Mismatch& m) {
    std::ostringstream text;
    text << m.operator_name << ": " << m.value << ": " << m.what;
    if (!m.index.empty() || m.tolerance > 0) {
        text << " at " << at::IntArrayRef(m.index) << ": " << m.device << " where the CPU gives " << m.cpu << " (error "
             << m.error << ", allowed " << m.tolerance << ", " << m.ulp << " ULP); " << m.wrong << " of " << m.elements
             << " elements are wrong";
    }
    return text.str();
}

void run_compared(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::string name = overload_name(op);
    const torch::jit::Stack arguments(torch::jit::last(*stack, op.schema().arguments().size()).vec());
    const torch::jit::Stack before = copied(arguments, false);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
    Reference reference = run_reference(op, before, true);
    if (!reference.ran) {
        reference = run_reference(op, before, false);
    }
    std::optional<Mismatch> found;
    if (reference.ran) {
        found = judge(op, name, arguments, before, torch::jit::last(*stack, op.schema().returns().size()), reference);
    }
    conclude(op, name, before, reference.ran, std::move(found));
}

std::vector<Comparison> comparison_report() {
    const std::lock_guard<std::mutex> lock(report().mutex);
    std::vector<Comparison> rows;
    for (const auto& [name, row] : report().rows) {
        rows.push_back(row);
    }
    return rows;
}

void reset_comparisons() {
    const std::lock_guard<std::mutex> lock(report().mutex);
    report().rows.clear();
}

void set_on_mismatch(OnMismatch action) {
    const std::lock_guard<std::mutex> lock(report().mutex);
    report().action = action;
}

void set_mismatch_handler(MismatchHandler handler) {
    const std::lock_guard<std::mutex> lock(report().mutex);
    report().handler = std::move(handler);
}

}  // namespace dipu
