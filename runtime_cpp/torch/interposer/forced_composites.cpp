// Kernels that take a composite operator's place while it is forced, and give it back afterwards.
#include "forced_composites.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "fallback.h"
#include "registry.h"
#include "wrapper/status.h"

namespace dipu {
namespace {

struct Forced {
    std::mutex mutex;
    std::map<std::string, std::vector<c10::RegistrationHandleRAII>> kernels;  // by overload
};

Forced& forced() {
    static Forced& value = *new Forced;
    return value;
}

// Moves through `to`, so that a gradient finds its way back.
c10::IValue moved(const c10::IValue& value, c10::Device target) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        return tensor.defined() ? tensor.to(target) : tensor;
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            list.push_back(tensor.defined() ? tensor.to(target) : tensor);
        }
        return list;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
            list.push_back(tensor.has_value() && tensor->defined() ? std::optional<at::Tensor>(tensor->to(target))
                                                                   : tensor);
        }
        return list;
    }
    return value.isDevice() && value.toDevice().is_privateuseone() ? c10::IValue(target) : value;
}

std::optional<c10::Device> device_in(const torch::jit::Stack& arguments) {
    for (const c10::IValue& value : arguments) {
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_privateuseone()) {
            return value.toTensor().device();
        }
        if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) {
                if (tensor.defined() && tensor.is_privateuseone()) {
                    return tensor.device();
                }
            }
        }
    }
    return std::nullopt;
}

// What was written on the CPU goes to the caller's own tensors, which are the results too.
void write_back(const c10::FunctionSchema& schema, const torch::jit::Stack& given, const torch::jit::Stack& copies,
                torch::jit::Stack& results) {
    for (std::size_t index = 0; index < given.size(); ++index) {
        const c10::AliasInfo* const alias = schema.arguments()[index].alias_info();
        if (alias == nullptr || !alias->isWrite()) {
            continue;
        }
        const auto write = [&](const at::Tensor& target, const at::Tensor& written) {
            if (target.defined() && written.defined() && !target.is_same(written)) {
                if (target.sizes() != written.sizes()) {
                    target.resize_(written.sizes());
                }
                target.copy_(written);
            }
        };
        if (given[index].isTensor()) {
            write(given[index].toTensor(), copies[index].toTensor());
            for (c10::IValue& result : results) {
                if (result.isTensor() && result.toTensor().is_same(copies[index].toTensor())) {
                    result = given[index];
                }
            }
        } else if (given[index].isTensorList()) {
            const auto targets = given[index].toTensorVector();
            const auto written = copies[index].toTensorVector();
            for (std::size_t each = 0; each < targets.size(); ++each) {
                write(targets[each], written[each]);
            }
        }
    }
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::size_t count = op.schema().arguments().size();
    const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    const std::optional<c10::Device> device = device_in(given);
    refuse("forced");
    FallbackRecord record(overload_name(op));
    record.add_bytes(device_bytes(given));
    torch::jit::Stack results;
    for (const c10::IValue& value : given) {
        results.push_back(moved(value, c10::Device(c10::kCPU)));
    }
    const torch::jit::Stack copies = results;
    op.callBoxed(&results);
    write_back(op.schema(), given, copies, results);
    torch::jit::drop(*stack, count);
    for (const c10::IValue& result : results) {
        stack->push_back(device.has_value() ? moved(result, *device) : result);
    }
    record.add_bytes(device_bytes(torch::jit::last(*stack, results.size())));
}

// It computes new tensors from tensors: no view, and no question about one.
bool computes(const c10::FunctionSchema& schema) {
    const auto is_tensor = [](const c10::TypePtr& type) { return type->str().find("Tensor") != std::string::npos; };
    const bool takes = std::any_of(schema.arguments().begin(), schema.arguments().end(),
                                   [&](const c10::Argument& argument) { return is_tensor(argument.type()); });
    const bool views = std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& value) {
        return value.alias_info() != nullptr && !value.alias_info()->isWrite();
    });
    const bool writes =
        std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
            return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
        });
    const bool gives = std::any_of(schema.returns().begin(), schema.returns().end(),
                                   [&](const c10::Argument& value) { return is_tensor(value.type()); });
    return takes && !views && (gives || writes);
}

bool is_composite(const c10::OperatorHandle& op) {
    return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

std::vector<c10::RegistrationHandleRAII> take_place(const c10::OperatorHandle& op) {
    std::vector<c10::RegistrationHandleRAII> handles;
    // The autograd key, too: what is composed on the CPU has its gradient there.
    for (const c10::DispatchKey key : {c10::DispatchKey::AutogradPrivateUse1, c10::DispatchKey::PrivateUse1}) {
        handles.push_back(c10::Dispatcher::singleton().registerImpl(
            op.operator_name(), key, c10::KernelFunction::makeFromBoxedFunction<&run_on_cpu>(), std::nullopt, nullptr,
            "torch_dipu"));
    }
    return handles;
}

}  // namespace

std::vector<std::string> force_composites(const std::function<bool(const std::string&)>& wanted) {
    const std::lock_guard<std::mutex> lock(forced().mutex);
    auto& kernels = forced().kernels;
    std::vector<std::string> names;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
        const auto op = name.getNamespace() == "aten" ? c10::Dispatcher::singleton().findOp(name) : std::nullopt;
        if (!op.has_value() || !op->hasSchema()) {
            continue;
        }
        const std::string overload = overload_name(*op).substr(6);  // without "aten::"
        if (!wanted(overload)) {
            kernels.erase(overload);
        } else if (kernels.count(overload) != 0) {
            names.push_back(overload);
        } else if (!has_wrapper(overload) && computes(op->schema()) && is_composite(*op) &&
                   !op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
            kernels.emplace(overload, take_place(*op));
            names.push_back(overload);
        }
    }
    return names;
}

}  // namespace dipu
