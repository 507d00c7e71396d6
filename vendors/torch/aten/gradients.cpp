// Differentiates by PyTorch's autograd.
#include "aten/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

namespace diopi::aten {
namespace {

Tensors leaves_of(const Tensors& inputs) {
    Tensors leaves;
    for (const at::Tensor& input : inputs) {
        leaves.push_back(input.defined() ? input.detach().requires_grad_(true) : input);
    }
    return leaves;
}

// Those outputs that depend on a leaf and have a gradient.
void keep_differentiable(Tensors& outputs, Tensors& grads) {
    size_t kept = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].requires_grad() || !grads[i].defined()) continue;
        outputs[kept] = outputs[i];
        grads[kept++] = grads[i].to(outputs[i].scalar_type());
    }
    outputs.resize(kept);
    grads.resize(kept);
}

}  // namespace

Tensors gradients(const Tensors& inputs, const Tensors& grad_outputs,
                  const std::function<Tensors(const Tensors&)>& forward) {
    const c10::AutoGradMode recording(true);
    Tensors leaves = leaves_of(inputs);
    Tensors outputs = forward(leaves);
    Tensors grads = grad_outputs;
    keep_differentiable(outputs, grads);
    Tensors defined;
    for (const at::Tensor& leaf : leaves) {
        if (leaf.defined()) defined.push_back(leaf);
    }
    Tensors found(defined.size());
    if (!outputs.empty()) found = ::torch::autograd::grad(outputs, defined, grads, std::nullopt, false, true);
    Tensors results;
    size_t next = 0;
    for (const at::Tensor& leaf : leaves) {
        if (!leaf.defined()) {
            results.emplace_back();
            continue;
        }
        const at::Tensor& grad = found[next++];
        results.push_back(grad.defined() ? grad : at::zeros_like(leaf.detach()));
    }
    return results;
}

}  // namespace diopi::aten
