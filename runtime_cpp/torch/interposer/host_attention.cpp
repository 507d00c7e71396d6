// Fused attention as products and a softmax of CPU tensors.
#include "host_attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "device/generator.h"

namespace dipu {
namespace {

// What both operators are given of query, key and value, (batch, head, token, channel); halves are computed in float32.
struct Heads {
    at::Tensor query, key, value;
    double scale;
    bool is_causal;
    int64_t share;  // heads of the query that one head of the key serves

    Heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const c10::IValue& given_scale, bool causal)
        : query(wide(q)),
          scale(given_scale.isNone() ? 1 / std::sqrt(static_cast<double>(q.size(3))) : given_scale.toDouble()),
          is_causal(causal),
          share(q.size(1) / k.size(1)) {
        key = wide(k).repeat_interleave(share, 1);
        value = wide(v).repeat_interleave(share, 1);
    }

    static at::Tensor wide(const at::Tensor& tensor) {
        return tensor.cpu().to(tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    }

    at::Tensor scores() const {
        const at::Tensor products = query.matmul(key.transpose(2, 3)).mul(scale);
        if (!is_causal) {
            return products;
        }
        const at::Tensor later = at::ones({query.size(2), key.size(2)}, at::kBool).triu(1);
        return products.masked_fill(later, -std::numeric_limits<double>::infinity());
    }

    // Of one head of the key, the sum over the heads that it serves.
    at::Tensor shared(const at::Tensor& grad) const { return grad.unflatten(1, {grad.size(1) / share, share}).sum(2); }
};

void require_plain(const c10::IValue& bias) {
    TORCH_CHECK_NOT_IMPLEMENTED(bias.isNone() || !bias.toTensor().defined(),
                                "fused attention takes no mask; call torch.nn.functional.scaled_dot_product_attention");
}

// Added to the offset that the CPU's forward operator keeps, whose gradient then knows that the CPU drew: generators of the
// device stand at multiples of four.
constexpr int64_t kDrawnHere = 1;

// What weights are multiplied by.
at::Tensor drawn(const at::Tensor& weights, double dropout, const at::Generator& generator) {
    const at::Tensor kept = at::empty_like(weights).bernoulli_(1 - dropout, generator);
    return dropout < 1 ? kept.div_(1 - dropout) : kept;
}

}  // namespace

// query, key, value, attn_bias, dropout_p, is_causal, return_debug_mask, scale
void attention_on_host(torch::jit::Stack& stack) {
    constexpr std::size_t kArguments = 8;
    const auto given = torch::jit::last(stack, kArguments).vec();
    require_plain(given[3]);
    const double dropout = given[4].toDouble();
    const at::Tensor query = given[0].toTensor();
    const Heads heads(query, given[1].toTensor(), given[2].toTensor(), given[7], given[5].toBool());
    const at::Tensor scores = heads.scores();
    at::Tensor weights = scores.softmax(-1);
    const at::Tensor none, seed = at::zeros({}, query.options().dtype(at::kLong)), offset = seed.clone();
    if (dropout != 0) {
        at::Generator generator = default_generator(query.device().index());
        weights = weights.mul(drawn(weights, dropout, cpu_twin(generator)));
        const std::lock_guard<std::mutex> lock(generator.mutex());
        at::check_generator<Generator>(generator)->write_state(seed, offset);
        offset.add_(kDrawnHere);
    }
    const at::Tensor out = weights.matmul(heads.value).to(query.scalar_type()).to(query.device());
    const at::Tensor lse = scores.logsumexp(-1).to(query.device());
    torch::jit::drop(stack, kArguments);
    torch::jit::push(stack, out, lse, none, none, query.size(2), heads.key.size(2), seed, offset, none);
}

// grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
// philox_seed, philox_offset, scale
void attention_backward_on_host(torch::jit::Stack& stack) {
    constexpr std::size_t kArguments = 17;
    const auto given = torch::jit::last(stack, kArguments).vec();
    require_plain(given[4]);
    const double dropout = given[12].toDouble();
    const at::Tensor query = given[1].toTensor();
    const Heads heads(query, given[2].toTensor(), given[3].toTensor(), given[16], given[13].toBool());
    const at::Tensor grad = Heads::wide(given[0].toTensor());
    const at::Tensor weights = heads.scores().softmax(-1);
    at::Tensor grad_weights = grad.matmul(heads.value.transpose(2, 3)), mixed = weights;
    if (dropout != 0) {
        const auto seed = given[14].toTensor().item<int64_t>(), offset = given[15].toTensor().item<int64_t>();
        TORCH_CHECK(
            offset % 4 == kDrawnHere,
            "the CPU cannot tell which weights of attention the device dropped; let both operators run on one of "
            "them, e.g. by torch.dipu.fallback.set(\".*fused_attention.*\")");
        const at::Generator drew =
            last_cpu_twin(static_cast<uint64_t>(seed), static_cast<uint64_t>(offset - kDrawnHere));
        const at::Tensor factors = drawn(weights, dropout, drew);
        grad_weights = grad_weights.mul(factors);
        mixed = weights.mul(factors);
    }
    const at::Tensor mean = grad_weights.mul(weights).sum(-1, /*keepdim=*/true);
    const at::Tensor grad_scores = weights.mul(grad_weights.sub(mean)).mul(heads.scale);
    const auto result = [&](const at::Tensor& tensor) { return tensor.to(query.scalar_type()).to(query.device()); };
    torch::jit::drop(stack, kArguments);
    torch::jit::push(stack, result(grad_scores.matmul(heads.key)),
                     result(heads.shared(grad_scores.transpose(2, 3).matmul(heads.query))),
                     result(heads.shared(mixed.transpose(2, 3).matmul(grad))), at::Tensor());
}

}  // namespace dipu
