// Convolution reaches a device under another name than the CPU's; the gradients of a linear layer and of an RMS norm, and fused attention,
// are no operators there. The gradients of other norms want the statistics there in the dtype that they have there.
#include "substitute.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <string_view>
#include <vector>

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
    const int64_t groups = (begin + 8)->toInt();
    const int64_t channels = transposed ? weight.size(1) * groups : weight.size(0);
    stack.insert(begin + 3, c10::IValue(std::vector<int64_t>{channels}));
}

// Where the gradient of a norm has its input, its weight and the two statistics.
struct NormGradient {
    std::string_view name;
    std::size_t input, weight;
    std::array<std::size_t, 2> statistics;
};
constexpr NormGradient kNormGradients[] = {
    {"aten::native_layer_norm_backward", 1, 5, {3, 4}},
    {"aten::native_group_norm_backward", 1, 4, {2, 3}},
    {"aten::native_batch_norm_backward", 1, 2, {5, 6}},
};

// On the CPU statistics have the dtype of the parameters, or of the input where there are none; float32 of halves on the device.
void convert_statistics(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto is_tensor = [](const c10::IValue& value) { return value.isTensor() && value.toTensor().defined(); };
    for (const NormGradient& norm : kNormGradients) {
        if (op.operator_name().name != norm.name) {
            continue;
        }
        c10::IValue* const given = &*(stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()));
        const at::Tensor like = given[is_tensor(given[norm.weight]) ? norm.weight : norm.input].toTensor();
        for (const std::size_t index : norm.statistics) {
            if (is_tensor(given[index])) {
                given[index] = given[index].toTensor().to(like.scalar_type());
            }
        }
    }
}

at::Tensor rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

// linear_backward(self, grad_output, weight, output_mask)
void linear_backward(torch::jit::Stack& stack) {
    const auto begin = stack.end() - 4;
    const c10::Device device = (begin + 1)->toTensor().device();
    const at::Tensor input = begin->toTensor().cpu();
    const at::Tensor given = (begin + 2)->toTensor().cpu();
    // A weight of one dimension is one row, whose outputs have none of their own.
    const at::Tensor weight = given.dim() == 1 ? given.unsqueeze(0) : given;
    const at::Tensor grad_output = (begin + 1)->toTensor().cpu();
    const at::Tensor grad = given.dim() == 1 ? grad_output.unsqueeze(-1) : grad_output;
    const c10::List<bool> mask = (begin + 3)->toBoolList();
    const at::Tensor grad_input = mask[0] ? grad.matmul(weight.conj()).to(device) : at::Tensor();
    const at::Tensor grad_weight =
        mask[1] ? rows(grad).t().matmul(rows(input).conj()).view_as(given).to(device) : at::Tensor();
    const at::Tensor grad_bias = mask[2] ? rows(grad).sum(0).to(device) : at::Tensor();
    torch::jit::drop(stack, 4);
    torch::jit::push(stack, grad_input, grad_weight, grad_bias);
}

// _fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask): with the normalized n, the gradient of the input
// is that of n, without its part along n, over the root mean square.
void rms_norm_backward(torch::jit::Stack& stack) {
    const auto begin = stack.end() - 6;
    const at::Tensor given = (begin + 1)->toTensor();
    const auto wide = [](const at::Tensor& tensor) {
        return tensor.cpu().to(tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    };
    const at::Tensor grad = wide(begin->toTensor()), rstd = wide((begin + 3)->toTensor());
    const at::Tensor normalized = wide(given).mul(rstd);
    const bool has_weight = (begin + 4)->isTensor() && (begin + 4)->toTensor().defined();
    const c10::List<bool> mask = (begin + 5)->toBoolList();
    const auto normal_dims = static_cast<int64_t>((begin + 2)->toIntVector().size());
    std::vector<int64_t> inner, outer;
    for (int64_t d = 0; d < given.dim(); ++d) {
        (d < given.dim() - normal_dims ? outer : inner).push_back(d);
    }
    const at::Tensor along = has_weight ? grad.mul(wide((begin + 4)->toTensor())) : grad;
    const at::Tensor mean = along.mul(normalized).mean(inner, /*keepdim=*/true);
    const auto result = [&](const at::Tensor& tensor) { return tensor.to(given.scalar_type()).to(given.device()); };
    const at::Tensor grad_input = mask[0] ? result(along.sub(normalized.mul(mean)).mul(rstd)) : at::Tensor();
    at::Tensor grad_weight = grad.mul(normalized);
    if (!outer.empty()) {
        grad_weight = grad_weight.sum(outer);
    }
    grad_weight = has_weight && mask[1] ? result(grad_weight) : at::Tensor();
    torch::jit::drop(stack, 6);
    torch::jit::push(stack, grad_input, grad_weight);
}

}  // namespace

bool run_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    if (!op.operator_name().overload_name.empty()) {
        return false;
    }
    const std::string& name = op.operator_name().name;
    if (name == "aten::linear_backward") {
        linear_backward(stack);
    } else if (name == "aten::_fused_rms_norm_backward") {
        rms_norm_backward(stack);
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
    convert_statistics(op, stack);
    return op;
}

}  // namespace dipu
