// What stands beside attention in a transformer: rotary embedding, masked softmax.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <diopi/functions_ext.h>

#include <limits>

#include "aten/call.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor turned(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool interleaved) {
    const int64_t half = x.size(-1) / 2;
    const at::Tensor first = interleaved ? x.slice(-1, 0, std::nullopt, 2) : x.slice(-1, 0, half);
    const at::Tensor second = interleaved ? x.slice(-1, 1, std::nullopt, 2) : x.slice(-1, half);
    const at::Tensor turned_first = first * cos - second * sin;
    const at::Tensor turned_second = first * sin + second * cos;
    return interleaved ? at::stack({turned_first, turned_second}, -1).flatten(-2)
                       : at::cat({turned_first, turned_second}, -1);
}

// Turns the heads of each row, a token, by the row of `cos` and `sin` that gives all channels of a head.
void turn_heads(diopiTensorHandle_t handle, const at::Tensor& cos, const at::Tensor& sin, int64_t channels) {
    at::Tensor rows = tensor(handle);
    const at::Tensor heads = wide(rows).reshape({cos.size(0), -1, channels});
    const at::Tensor swapped = at::cat({-heads.slice(-1, channels / 2), heads.slice(-1, 0, channels / 2)}, -1);
    rows.copy_((heads * cos + swapped * sin).view(rows.sizes()));
}

// The weights of a softmax that are zero whatever the scores are.
at::Tensor hidden_weights(const at::Tensor& scores, diopiConstTensorHandle_t mask, bool triangle) {
    if (!triangle) return tensor(mask).ne(0);
    return at::ones({scores.size(-2), scores.size(-1)}, at::kBool).triu(1);
}

}  // namespace

diopiError_t diopiRotaryEmbedding(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t x,
                                  diopiConstTensorHandle_t cos, diopiConstTensorHandle_t sin, const bool conj,
                                  const bool interleaved) {
    return guarded([&] {
        const at::Tensor height = wide(tensor(sin));
        write(out, turned(wide(tensor(x)), wide(tensor(cos)), conj ? -height : height, interleaved));
    });
}

diopiError_t diopiRotaryEmbeddingV2(diopiContextHandle_t, diopiTensorHandle_t query, diopiTensorHandle_t key,
                                    diopiConstTensorHandle_t cos, diopiConstTensorHandle_t sin, int64_t dim) {
    return guarded([&] {
        const at::Tensor width = wide(tensor(cos)).reshape({-1, 1, dim});
        const at::Tensor height = wide(tensor(sin)).reshape({-1, 1, dim});
        turn_heads(query, width, height, dim);
        turn_heads(key, width, height, dim);
    });
}

diopiError_t diopiScaledMaskedSoftmax(diopiContextHandle_t, diopiTensorHandle_t output, diopiConstTensorHandle_t input,
                                      diopiConstTensorHandle_t mask, double scale, bool fixed_triu_mask) {
    return guarded([&] {
        const at::Tensor scores = wide(tensor(input)) * scale;
        const at::Tensor hidden = hidden_weights(scores, mask, fixed_triu_mask);
        const double lowest = std::numeric_limits<float>::lowest();  // not -inf: rows without a weight are zero
        write(output, at::softmax(scores.masked_fill(hidden, lowest), -1).masked_fill(hidden, 0));
    });
}

diopiError_t diopiScaledMaskedSoftmaxBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                              diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output,
                                              diopiConstTensorHandle_t, double scale, bool) {
    return guarded([&] {
        const at::Tensor weights = wide(tensor(output));  // zero where hidden, and so is the gradient
        const at::Tensor weighted = wide(tensor(grad_output)) * weights;
        write(grad_input, (weighted - weights * weighted.sum({-1}, true)) * scale);
    });
}

}  // namespace impl::torch
