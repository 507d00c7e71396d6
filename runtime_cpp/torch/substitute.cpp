// Convolution reaches a device under another name than the CPU's; the gradient of a linear layer and fused attention are no operators
// there.
#include "substitute.h"

#include <ATen/core/Tensor.h>

#include "host_attention.h"

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

at::Tensor rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

// linear_backward(self, grad_output, weight, output_mask)
void linear_backward(torch::jit::Stack& stack) {
    const auto begin = stack.end() - 4;
    const c10::Device device = (begin + 1)->toTensor().device();
    const at::Tensor input = begin->toTensor().cpu();
    const at::Tensor grad = (begin + 1)->toTensor().cpu();
    const at::Tensor weight = (begin + 2)->toTensor().cpu();
    const c10::List<bool> mask = (begin + 3)->toBoolList();
    const at::Tensor grad_input = mask[0] ? grad.matmul(weight.conj()).to(device) : at::Tensor();
    const at::Tensor grad_weight = mask[1] ? rows(grad).t().matmul(rows(input).conj()).to(device) : at::Tensor();
    const at::Tensor grad_bias = mask[2] ? rows(grad).sum(0).to(device) : at::Tensor();
    torch::jit::drop(stack, 4);
    torch::jit::push(stack, grad_input, grad_weight, grad_bias);
}

}  // namespace

bool run_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    if (!op.operator_name().overload_name.empty()) {
        return false;
    }
    const std::string& name = op.operator_name().name;
    if (name == "aten::linear_backward") {
        linear_backward(stack);
    } else if (name == "aten::_scaled_dot_product_fused_attention_overrideable") {
        attention_on_host(stack);
    } else if (name == "aten::_scaled_dot_product_fused_attention_overrideable_backward") {
        attention_backward_on_host(stack);
    } else {
        return false;
    }
    return true;
}

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
