// Keeps the caller's outputs away from a fallback until there is something to put into them.
#include "fallback_outputs.h"

#include <ATen/ops/_copy_from_and_resize.h>
#include <ATen/ops/empty.h>

namespace dipu {
namespace {

bool is_output(const c10::Argument& argument, const c10::IValue& value) {
    const bool written = argument.kwarg_only() && argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (!written || !value.isTensor() || !value.toTensor().defined()) {
        return false;
    }
    // An empty one is resized without a warning; one with gaps would cost a conversion in the end.
    const at::Tensor& tensor = value.toTensor();
    return tensor.is_privateuseone() && tensor.is_contiguous() && tensor.numel() > 0;
}

}  // namespace

std::vector<FallbackOutput> take_outputs(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t begin = stack.size() - arguments.size();
    std::vector<FallbackOutput> outputs;
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        c10::IValue& value = stack[begin + index];
        if (is_output(arguments[index], value)) {
            const at::Tensor wanted = value.toTensor();
            outputs.push_back({at::empty({0}, wanted.options()), wanted});
            value = outputs.back().written;
        }
    }
    return outputs;
}

void give_outputs(const std::vector<FallbackOutput>& outputs, const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const std::size_t begin = stack.size() - op.schema().returns().size();
    for (const FallbackOutput& output : outputs) {
        at::_copy_from_and_resize(output.written, output.wanted);
        for (std::size_t index = begin; index < stack.size(); ++index) {
            if (stack[index].isTensor() && stack[index].toTensor().is_same(output.written)) {
                stack[index] = output.wanted;
            }
        }
    }
}

}  // namespace dipu
