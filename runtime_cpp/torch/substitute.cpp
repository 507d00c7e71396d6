// Convolution is the one operator that reaches a device under another name than the CPU's.
#include "substitute.h"

#include <ATen/core/Tensor.h>

namespace dipu {
namespace {

c10::OperatorHandle named(const char* name) { return c10::Dispatcher::singleton().findSchemaOrThrow(name, ""); }

// convolution_backward takes the sizes of the bias, which the device's form leaves out: one for each output channel.
void insert_bias_sizes(torch::jit::Stack& stack) {
    constexpr std::ptrdiff_t kArguments = 10;  // grad_output, input, weight, stride ... output_mask
    const auto begin = stack.end() - kArguments;
    const at::Tensor& weight = (begin + 2)->toTensor();
    const bool transposed = (begin + 6)->toBool();
    const std::int64_t groups = (begin + 8)->toInt();
    const std::int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
    stack.insert(begin + 3, c10::IValue(std::vector<std::int64_t>{channels}));
}

}  // namespace

c10::OperatorHandle cpu_operator(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const std::string& name = op.operator_name().name;
    if (name == "aten::convolution_overrideable" && op.operator_name().overload_name.empty()) {
        return named("aten::convolution");
    }
    if (name == "aten::convolution_backward_overrideable" && op.operator_name().overload_name.empty()) {
        insert_bias_sizes(stack);
        return named("aten::convolution_backward");
    }
    return op;
}

}  // namespace dipu
