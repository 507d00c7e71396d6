// Nested tensors of the strided layout: their memory is the device's, what computes with them runs on the CPU.
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "interposer/fallback.h"
#include "library.h"

namespace dipu {
namespace {

// Besides views, what torch writes with operators on the buffer alone, which may lie anywhere. Sizes, strides and offsets
// lie in host memory on every device.
constexpr std::array<std::string_view, 8> kOnBuffers = {"aten::_nested_tensor_size",
                                                        "aten::_nested_tensor_strides",
                                                        "aten::_nested_tensor_storage_offsets",
                                                        "aten::is_same_size",
                                                        "aten::_to_copy",
                                                        "aten::clone",
                                                        "aten::copy_",
                                                        "aten::empty_like"};

bool is_view(const c10::OperatorHandle& op) {
    const auto& returns = op.schema().returns();
    return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& value) {
        return value.alias_info() != nullptr && !value.alias_info()->isWrite();
    });
}

bool works_on_buffers(const c10::OperatorHandle& op) {
    return is_view(op) || std::find(kOnBuffers.begin(), kOnBuffers.end(), op.operator_name().name) != kOnBuffers.end();
}

// The value with its tensors, and the device that it names, at `device`.
c10::IValue moved(const c10::IValue& value, c10::Device device) {
    const auto move = [&](const at::Tensor& tensor) {
        return !tensor.defined() ? tensor : (tensor.is_nested() ? tensor.contiguous() : tensor).to(device);
    };
    if (value.isTensor()) {
        return move(value.toTensor());
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            list.push_back(move(tensor));
        }
        return list;
    }
    return value.isDevice() ? c10::IValue(device) : value;
}

c10::Device device_among(c10::ArrayRef<c10::IValue> arguments) {
    for (const c10::IValue& value : arguments) {
        if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_privateuseone()) {
            return value.toTensor().device();
        }
    }
    return c10::Device(c10::kPrivateUse1);
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    FallbackRecord record(overload_name(op));
    const auto& schema = op.schema();
    const torch::jit::Stack given = torch::jit::last(stack, schema.arguments().size()).vec();
    const c10::Device device = device_among(given);
    record.add_bytes(device_bytes(given));
    torch::jit::drop(stack, given.size());
    for (const c10::IValue& value : given) {
        stack.push_back(moved(value, c10::kCPU));
    }
    const torch::jit::Stack on_cpu = torch::jit::last(stack, given.size()).vec();
    op.callBoxed(stack);
    const torch::jit::Stack results = torch::jit::pop(stack, schema.returns().size());
    // An argument that the operator writes is also what it returns.
    for (std::size_t index = 0; index < given.size(); ++index) {
        const auto* const alias = schema.arguments()[index].alias_info();
        if (alias != nullptr && alias->isWrite() && given[index].isTensor()) {
            given[index].toTensor().copy_(on_cpu[index].toTensor());
        }
    }
    for (const c10::IValue& result : results) {
        const auto same = std::find_if(on_cpu.begin(), on_cpu.end(), [&](const c10::IValue& value) {
            return value.isTensor() && result.isTensor() && value.toTensor().is_same(result.toTensor());
        });
        stack.push_back(same != on_cpu.end() ? given[same - on_cpu.begin()] : moved(result, device));
    }
    record.add_bytes(device_bytes(torch::jit::last(stack, results.size())));
}

void nested_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    if (works_on_buffers(op)) {
        op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::NestedTensorCPU), stack);
    } else {
        run_on_cpu(op, *stack);
    }
}

}  // namespace

void register_nested() {
    constexpr auto key = c10::DispatchKey::NestedTensorPrivateUse1;
    new_library("_", key).fallback(torch::CppFunction::makeFromBoxedFunction<&nested_boxed>());
    // Their composite kernels, which know nothing of nested tensors, would win over the fallback of the key.
    torch::Library& aten = new_library("aten", key);
    for (const c10::OperatorName& name :
         c10::Dispatcher::singleton().getRegistrationsForDispatchKey(c10::DispatchKey::NestedTensorCPU)) {
        if (name.getNamespace() == "aten") {
            aten.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&nested_boxed>());
        }
    }
}

}  // namespace dipu
