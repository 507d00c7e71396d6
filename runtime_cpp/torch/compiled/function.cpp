// The function of autograd behind a compiled training graph: it keeps what the forward program saves for the backward one.
#include "function.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace dipu::compiled {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Programs compute what was traced: neither autograd nor autocast has a say in the operators that they call.
struct AsTraced {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

// What a call hands through autograd beside the tensors that want a gradient.
struct Call {
    c10::intrusive_ptr<TrainingFunction> function;
    std::vector<Value> values;  // the arguments, then the results
};

bool lies_as(const at::Tensor& tensor, const Tangent& wanted) {
    for (std::size_t d = 0; d < wanted.sizes.size(); ++d) {
        if (wanted.sizes[d] != 1 && tensor.stride(static_cast<int64_t>(d)) != wanted.strides[d]) {
            return false;
        }
    }
    return true;
}

at::Tensor laid_as(const at::Tensor& gradient, const Tangent& wanted) {
    return lies_as(gradient, wanted)
               ? gradient
               : at::empty_strided(wanted.sizes, wanted.strides, gradient.options()).copy_(gradient);
}

// With create_graph=True gradients are part of the graph, and an error where they are differentiated.
struct Undifferentiable : torch::autograd::Function<Undifferentiable> {
    static variable_list forward(AutogradContext* /*context*/, const variable_list* gradients,
                                 const at::Tensor& /*wanting*/) {
        return *gradients;
    }

    static variable_list backward(AutogradContext* /*context*/, const variable_list& /*gradients*/) {
        TORCH_CHECK(false, "torch.compile with aot_autograd does not currently support double backward");
    }

    static variable_list of(variable_list gradients) {
        for (at::Tensor& gradient : gradients) {
            gradient = gradient.detach();
        }
        const at::Tensor wanting = at::empty({0}).requires_grad_();
        return apply(&std::as_const(gradients), wanting);
    }
};

struct CompiledFunction : torch::autograd::Function<CompiledFunction> {
    static variable_list forward(AutogradContext* context, Call& call, at::TensorList /*wanting*/) {
        const FunctionSpecification& specification = call.function->specification();
        const AsTraced as_traced;
        call.values = call.function->forward().run(std::move(call.values));
        const auto begin = static_cast<std::size_t>(specification.outputs);
        variable_list checked, unchecked;
        for (std::size_t i = begin; i < call.values.size(); ++i) {
            const auto& tensor = std::get<at::Tensor>(call.values[i]);
            const bool is_checked = i < begin + static_cast<std::size_t>(specification.checked);
            (is_checked ? checked : unchecked).push_back(tensor.is_view() ? tensor.detach() : tensor);
        }
        context->save_for_backward(std::move(checked));
        context->saved_data["function"] = c10::IValue::make_capsule(call.function);
        if (!unchecked.empty()) {
            context->saved_data["unchecked"] = unchecked;
        }
        variable_list differentiable;
        for (const Tangent& tangent : specification.tangents) {
            differentiable.push_back(std::get<at::Tensor>(call.values[static_cast<std::size_t>(tangent.output)]));
        }
        return differentiable;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto function =
            c10::static_intrusive_pointer_cast<TrainingFunction>(context->saved_data["function"].toCapsule());
        const FunctionSpecification& specification = function->specification();
        TORCH_CHECK(specification.deterministic || !at::globalContext().deterministicAlgorithms(),
                    "this function was compiled with torch.use_deterministic_algorithms(False), and its backward runs "
                    "with True");
        std::vector<Value> arguments;
        for (at::Tensor& saved : context->get_saved_variables()) {
            arguments.emplace_back(std::move(saved));
        }
        if (const auto unchecked = context->saved_data.find("unchecked"); unchecked != context->saved_data.end()) {
            for (at::Tensor& saved : unchecked->second.toTensorVector()) {
                arguments.emplace_back(std::move(saved));
            }
        }
        variable_list given;
        {
            const AsTraced as_traced;
            for (std::size_t i = 0; i < gradients.size(); ++i) {
                arguments.emplace_back(laid_as(gradients[i], specification.tangents[i]));
            }
            const std::vector<Value> results = function->backward().run(std::move(arguments));
            for (const int64_t argument : specification.gradients) {
                given.push_back(std::get<at::Tensor>(results[static_cast<std::size_t>(argument)]));
            }
        }
        if (at::GradMode::is_enabled()) {
            given = Undifferentiable::of(std::move(given));
        }
        given.insert(given.begin(), at::Tensor());  // of the call
        return given;
    }
};

}  // namespace

TrainingFunction::TrainingFunction(std::shared_ptr<Program> forward, std::shared_ptr<Program> backward,
                                   FunctionSpecification specification)
    : forward_(std::move(forward)),
      backward_(std::move(backward)),
      specification_(std::move(specification)) {}

std::vector<Value> TrainingFunction::call(std::vector<Value> arguments) {
    RECORD_FUNCTION("CompiledFunction", std::vector<c10::IValue>());
    for (const int64_t argument : specification_.written) {
        torch::autograd::impl::bump_version(std::get<at::Tensor>(arguments[static_cast<std::size_t>(argument)]));
    }
    variable_list wanting;
    for (const int64_t argument : specification_.gradients) {
        wanting.push_back(std::get<at::Tensor>(arguments[static_cast<std::size_t>(argument)]));
    }
    Call call{c10::intrusive_ptr<TrainingFunction>::reclaim_copy(this), std::move(arguments)};
    const at::AutoGradMode differentiated(true);
    const at::TensorList tensors(wanting);
    variable_list outputs = CompiledFunction::apply(call, tensors);
    call.values.resize(static_cast<std::size_t>(specification_.outputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        call.values[static_cast<std::size_t>(specification_.tangents[i].output)] = std::move(outputs[i]);
    }
    return std::move(call.values);
}

}  // namespace dipu::compiled
