// Scores, what is hidden of them, softmax, dropout, and the mix of values.
#include "functions/attend.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "aten/call.h"
#include "aten/wide.h"

namespace diopi::aten {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far each key stands behind each query.
at::Tensor distances(int64_t queries, int64_t keys, const at::TensorOptions& options) {
    return at::arange(keys, options) - (at::arange(queries, options) + (keys - queries)).unsqueeze(1);
}

at::Tensor hidden_keys(const at::Tensor& distance, const Sight& sight) {
    at::Tensor hidden = at::zeros_like(distance, distance.options().dtype(at::kBool));
    if (sight.causal) hidden = hidden.logical_or(distance.gt(0));
    if (sight.left >= 0) hidden = hidden.logical_or(distance.lt(-sight.left));
    if (sight.right >= 0) hidden = hidden.logical_or(distance.gt(sight.right));
    return sight.hidden.defined() ? hidden.logical_or(sight.hidden) : hidden;
}

at::Tensor softmax_of_seen(const at::Tensor& scores, const at::Tensor& hidden) {
    // A query that sees no key gives zeros. The lowest number instead of -inf keeps its gradient from becoming NaN.
    const double lowest = scores.scalar_type() == at::kDouble ? std::numeric_limits<double>::lowest()
                                                              : std::numeric_limits<float>::lowest();
    return at::softmax(scores.masked_fill(hidden, lowest), -1).masked_fill(hidden, 0);
}

at::Tensor kept_weights(const at::Tensor& weights, const Dropout& dropout) {
    if (dropout.kept.defined()) return dropout.kept.view(weights.sizes());
    return at::rand(weights.sizes(), dropout.generator, weights.options()).ge(dropout.p);
}

}  // namespace

Dropout dropping(double p, diopiGeneratorHandle_t gen) {
    return {p, p > 0 ? generator(gen) : std::nullopt, at::Tensor()};
}

Dropout dropping_again(double p, diopiGeneratorHandle_t gen) {
    return {p, p > 0 ? generator_again(gen) : std::nullopt, at::Tensor()};
}

Attention attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale, const Sight& sight,
                 const Dropout& dropout) {
    const int64_t share = q.size(-3) / k.size(-3);
    const at::Tensor keys = wide(k).repeat_interleave(share, -3);
    at::Tensor scores = at::matmul(wide(q), keys.transpose(-1, -2)) * scale;
    const at::Tensor distance = distances(q.size(-2), k.size(-2), q.options().dtype(at::kLong));
    if (sight.slopes.defined()) {
        scores = scores - sight.slopes.to(scores.scalar_type()).view({-1, 1, 1}) * distance.abs();
    }
    const at::Tensor hidden = hidden_keys(distance, sight);
    at::Tensor weights = softmax_of_seen(scores, hidden);
    at::Tensor kept;
    if (dropout.p > 0) {
        kept = kept_weights(weights, dropout);
        weights = dropout.p < 1 ? weights * kept / (1 - dropout.p) : weights * 0;
    }
    const at::Tensor out = at::matmul(weights, wide(v).repeat_interleave(share, -3));
    return {out, scores.masked_fill(hidden, -kInfinity), kept};
}

Ends ends_of(diopiConstTensorHandle_t handle) {
    const at::Tensor ends = tensor(handle).to(at::kLong).contiguous();
    return {ends.const_data_ptr<int64_t>(), ends.const_data_ptr<int64_t>() + ends.numel()};
}

std::vector<Attention> attend_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Ends& ends_q,
                                     const Ends& ends_k, double scale, const Sight& sight, const Dropout& dropout) {
    std::vector<Attention> sequences;
    int64_t drawn = 0;
    for (size_t b = 0; b + 1 < ends_q.size(); ++b) {
        const at::Tensor queries = heads_swapped(q.slice(0, ends_q[b], ends_q[b + 1]));
        const at::Tensor keys = heads_swapped(k.slice(0, ends_k[b], ends_k[b + 1]));
        Dropout of_one = dropout;
        if (dropout.kept.defined()) {
            const int64_t weights = queries.size(0) * queries.size(1) * keys.size(1);
            of_one.kept = dropout.kept.narrow(0, drawn, weights);
            drawn += weights;
        }
        const at::Tensor values = heads_swapped(v.slice(0, ends_k[b], ends_k[b + 1]));
        sequences.push_back(attend(queries, keys, values, scale, sight, of_one));
    }
    return sequences;
}

at::Tensor packed_out(const std::vector<Attention>& sequences) {
    std::vector<at::Tensor> outs;
    for (const Attention& one : sequences) outs.push_back(heads_swapped(one.out));
    return at::cat(outs);
}

at::Tensor packed_kept(const std::vector<Attention>& sequences) {
    std::vector<at::Tensor> kept;
    for (const Attention& one : sequences) {
        if (one.kept.defined()) kept.push_back(one.kept.flatten());
    }
    return kept.empty() ? at::Tensor() : at::cat(kept);
}

at::Tensor padded_log_sums(const std::vector<Attention>& sequences, int64_t longest) {
    std::vector<at::Tensor> sums;
    for (const Attention& one : sequences) {
        const at::Tensor of_one = at::logsumexp(one.scores, {-1});
        sums.push_back(at::constant_pad_nd(of_one, {0, longest - of_one.size(-1)}, -kInfinity));
    }
    return at::stack(sums);
}

}  // namespace diopi::aten
