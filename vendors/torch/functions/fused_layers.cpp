// Whole layers of a language model over ATen, which needs no workspace for them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <diopi/functions_lmdeploy.h>

#include <algorithm>
#include <cmath>

#include "aten/call.h"
#include "aten/wide.h"
#include "functions/attend.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor rows_normalized(const at::Tensor& rows, const at::Tensor& scale, double eps) {
    return rows * (rows.square().mean({-1}, true) + eps).rsqrt() * scale;
}

// A call for the size of a workspace; ATen needs none.
bool asks_for_size(int64_t* size) {
    if (size == nullptr || *size >= 0) return false;
    *size = 0;
    return true;
}

// Turns the pairs of neighbouring channels (sequence, head, channel) by the angles of each sequence's place.
at::Tensor turned(const at::Tensor& heads, const at::Tensor& places, int64_t embedding, double theta) {
    if (embedding <= 0) return heads;
    const at::Tensor exponents = at::arange(0, heads.size(-1), 2, heads.options()) / embedding;
    const at::Tensor angles = places.to(heads.scalar_type()).view({-1, 1, 1}) / at::pow(theta, exponents);
    const at::Tensor first = heads.slice(-1, 0, std::nullopt, 2);
    const at::Tensor second = heads.slice(-1, 1, std::nullopt, 2);
    return at::stack({first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()}, -1)
        .flatten(-2);
}

struct Heads {
    at::Tensor q, k, v;  // (sequence, head, channel)
};

Heads projected(const at::Tensor& x, const at::Tensor& weight, diopiConstTensorHandle_t bias, int64_t heads,
                int64_t kv_heads, int64_t channels) {
    at::Tensor qkv = at::matmul(x, wide(weight));
    if (bias != nullptr) qkv = qkv + tensor(bias).flatten();
    const auto parts = qkv.view({x.size(0), -1, channels}).split_with_sizes({heads, kv_heads, kv_heads}, 1);
    return {parts[0], parts[1], parts[2]};
}

// Puts the heads of one new token behind the `past` tokens of a cache (head, token, channel); gives all that it holds.
at::Tensor cached(const at::Tensor& cache, const at::Tensor& heads, int64_t past, int64_t longest) {
    cache.select(1, past % longest).copy_(heads);
    return cache.slice(1, 0, std::min(past + 1, longest));
}

}  // namespace

diopiError_t diopiFusedSiluFfnInp(diopiContextHandle_t, diopiTensorHandle_t inoutput, diopiConstTensorHandle_t weight1,
                                  diopiConstTensorHandle_t weight2, diopiConstTensorHandle_t weight3,
                                  diopiTensorHandle_t, int64_t* workspace_size, int64_t) {
    return guarded([&] {
        if (asks_for_size(workspace_size)) return;
        const at::Tensor x = tensor(inoutput);
        const at::Tensor gated = at::silu(at::matmul(x, tensor(weight1))) * at::matmul(x, tensor(weight3));
        write(inoutput, at::matmul(gated, tensor(weight2)));
    });
}

diopiError_t diopiRootMeanSquareNormInp(diopiContextHandle_t, diopiTensorHandle_t inoutput,
                                        diopiConstTensorHandle_t scale, float eps) {
    return guarded([&] { write(inoutput, rows_normalized(wide(tensor(inoutput)), tensor(scale), eps)); });
}

diopiError_t diopiFusedAddRootMeanSquareNormInp(diopiContextHandle_t, diopiTensorHandle_t inoutput,
                                                diopiTensorHandle_t residual, diopiConstTensorHandle_t bias,
                                                diopiConstTensorHandle_t scale, float eps) {
    return guarded([&] {
        at::Tensor total = wide(tensor(residual)) + tensor(inoutput);
        if (bias != nullptr) total = total + tensor(bias);
        write(inoutput, rows_normalized(total, tensor(scale), eps));
        write(residual, total);
    });
}

diopiError_t diopiFusedDecoderAttentionInp(diopiContextHandle_t, diopiTensorHandle_t inoutput,
                                           diopiConstTensorHandle_t qkv_weight, diopiConstTensorHandle_t qkv_bias,
                                           diopiTensorHandle_t, int64_t* workspace_size, int64_t,
                                           diopiTensorHandle_t key_cache, diopiTensorHandle_t value_cache,
                                           diopiConstTensorHandle_t finished,
                                           diopiConstTensorHandle_t total_padding_tokens,
                                           diopiConstTensorHandle_t sequence_lengths, int64_t step, int64_t layer_id,
                                           int64_t local_head_num, int64_t local_kv_head_num, int64_t size_per_head,
                                           int64_t max_seq_len, int64_t rotary_embedding, float rope_theta) {
    return guarded([&] {
        if (asks_for_size(workspace_size)) return;
        const at::Tensor x = tensor(inoutput);
        const Heads heads =
            projected(wide(x), tensor(qkv_weight), qkv_bias, local_head_num, local_kv_head_num, size_per_head);
        const at::Tensor places = tensor(total_padding_tokens).neg() + (step - 1);
        const at::Tensor queries = turned(heads.q, places, rotary_embedding, rope_theta);
        const at::Tensor keys = turned(heads.k, places, rotary_embedding, rope_theta);
        const Ends lengths = ends_of(sequence_lengths);
        for (int64_t b = 0; b < x.size(0); ++b) {
            if (finished != nullptr && tensor(finished)[b].item<bool>()) continue;
            const int64_t past = lengths[static_cast<size_t>(b)];
            const at::Tensor k = cached(tensor(key_cache)[layer_id][b], keys[b], past, max_seq_len);
            const at::Tensor v = cached(tensor(value_cache)[layer_id][b], heads.v[b], past, max_seq_len);
            const double scale = 1 / std::sqrt(static_cast<double>(size_per_head));
            x[b].copy_(attend(queries[b].unsqueeze(1), k, v, scale, {}).out.flatten());
        }
    });
}

}  // namespace impl::torch
