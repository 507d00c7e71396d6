// Flash attention, in the form of its authors and in the one with masks and layouts; here with the scores in memory.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logsumexp.h>
#include <diopi/functions_ext.h>

#include <string_view>

#include "aten/call.h"
#include "aten/gradients.h"
#include "functions/attend.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

constexpr int64_t kCopies = 8;  // of each query's maximum and sum, by contract

at::Tensor or_undefined(diopiConstTensorHandle_t handle) { return handle == nullptr ? at::Tensor() : tensor(handle); }

// The queries, keys and values of a call, and their gradients.
struct Inputs {
    diopiConstTensorHandle_t q, k, v;
    Tensors tensors() const { return {tensor(q), tensor(k), tensor(v)}; }
};

struct Gradients {
    diopiTensorHandle_t q, k, v;
    void write_all(const Tensors& grads) const {
        write(q, grads[0]);
        write(k, grads[1]);
        write(v, grads[2]);
    }
};

at::Tensor attend_batch(const Tensors& qkv, double scale, const Sight& sight, const Dropout& dropout) {
    return heads_swapped(
        attend(heads_swapped(qkv[0]), heads_swapped(qkv[1]), heads_swapped(qkv[2]), scale, sight, dropout).out);
}

// (batch, head, token, channel) from a layout of the contract, by the channels of a head, and back.
at::Tensor heads_first(const at::Tensor& tensor, std::string_view layout, int64_t channels) {
    const at::Tensor batched = layout == "SBH" ? tensor.transpose(0, 1) : tensor;
    if (layout == "BNSD") return batched;
    return heads_swapped(batched.dim() == 3 ? batched.unflatten(-1, {-1, channels}) : batched);
}

at::Tensor in_layout(const at::Tensor& tensor, std::string_view layout) {
    if (layout == "BNSD") return tensor;
    if (layout == "BSND") return heads_swapped(tensor);
    const at::Tensor flat = heads_swapped(tensor).flatten(-2);
    return layout == "SBH" ? flat.transpose(0, 1) : flat;
}

int64_t channels_of(const at::Tensor& q, std::string_view layout, int64_t heads) {
    if (layout != "BSH" && layout != "SBH" && layout != "BSND" && layout != "BNSD") {
        throw Failure(diopiErrorOccurred, "'" + std::string(layout) + "' is no layout of an attention");
    }
    return q.dim() == 3 ? q.size(-1) / heads : q.size(-1);
}

Attention attend_layout(const Tensors& qkv, std::string_view layout, int64_t heads, double scale, const Sight& sight,
                        const Dropout& dropout) {
    const int64_t channels = channels_of(qkv[0], layout, heads);
    return attend(heads_first(qkv[0], layout, channels), heads_first(qkv[1], layout, channels),
                  heads_first(qkv[2], layout, channels), scale, sight, dropout);
}

// What the customized forms give beside the output.
struct Kept {
    diopiTensorHandle_t* dropout_mask;
    diopiTensorHandle_t* softmax_max;
    diopiTensorHandle_t* softmax_sum;
    diopiTensorHandle_t* softmax_out;
};

// Of scores whose last dimension is the keys.
void keep(diopiContextHandle_t ctx, const Kept& kept, const at::Tensor& greatest, const at::Tensor& total,
          const at::Tensor& dropped) {
    const auto copied = [](const at::Tensor& of_query) {
        return of_query.to(at::kFloat).unsqueeze(-1).repeat_interleave(kCopies, -1);
    };
    allocate(ctx, kept.softmax_max, copied(greatest));
    allocate(ctx, kept.softmax_sum, copied(total));
    allocate(ctx, kept.softmax_out, at::empty({0}, at::kFloat));
    *kept.dropout_mask = nullptr;
    if (dropped.defined()) allocate(ctx, kept.dropout_mask, dropped.to(at::kByte));
}

at::Tensor sum_of(const at::Tensor& scores) { return (scores - scores.amax({-1}, true)).exp().sum({-1}); }

// Drops what the forward function has dropped.
Dropout dropping_by(double p, diopiConstTensorHandle_t mask) {
    if (p > 0 && mask == nullptr) throw Failure(diopiErrorOccurred, "the gradient of a dropout needs 'dropout_mask'");
    return {p, std::nullopt, p > 0 ? tensor(mask).to(at::kBool) : at::Tensor()};
}

}  // namespace

diopiError_t diopiFlashAttention(diopiContextHandle_t, diopiTensorHandle_t attention_out,
                                 diopiTensorHandle_t softmax_lse, diopiGeneratorHandle_t gen,
                                 diopiConstTensorHandle_t q, diopiConstTensorHandle_t k, diopiConstTensorHandle_t v,
                                 diopiConstTensorHandle_t alibi_slopes, float p_dropout, float softmax_scale,
                                 bool is_causal, int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes)};
        const Attention attention = attend(heads_swapped(tensor(q)), heads_swapped(tensor(k)), heads_swapped(tensor(v)),
                                           softmax_scale, sight, dropping(p_dropout, gen));
        write(attention_out, heads_swapped(attention.out));
        write(softmax_lse, at::logsumexp(attention.scores, {-1}));
    });
}

diopiError_t diopiFlashAttentionBackward(diopiContextHandle_t, diopiTensorHandle_t grad_q, diopiTensorHandle_t grad_k,
                                         diopiTensorHandle_t grad_v, diopiConstTensorHandle_t grad_output,
                                         diopiGeneratorHandle_t gen, diopiConstTensorHandle_t q,
                                         diopiConstTensorHandle_t k, diopiConstTensorHandle_t v,
                                         diopiConstTensorHandle_t alibi_slopes, diopiConstTensorHandle_t,
                                         diopiConstTensorHandle_t, float p_dropout, float softmax_scale, bool is_causal,
                                         int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes)};
        const Dropout dropout = dropping_again(p_dropout, gen);
        Gradients{grad_q, grad_k, grad_v}.write_all(
            gradients(Inputs{q, k, v}.tensors(), {tensor(grad_output)},
                      [&](const Tensors& qkv) { return Tensors{attend_batch(qkv, softmax_scale, sight, dropout)}; }));
    });
}

diopiError_t diopiFlashAttentionVarLen(diopiContextHandle_t, diopiTensorHandle_t attention_out,
                                       diopiTensorHandle_t softmax_lse, diopiGeneratorHandle_t gen,
                                       diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
                                       diopiConstTensorHandle_t v, diopiConstTensorHandle_t cum_seq_q,
                                       diopiConstTensorHandle_t cum_seq_kv, diopiConstTensorHandle_t alibi_slopes,
                                       int32_t max_seqlen_q, int32_t, float p_dropout, float softmax_scale,
                                       bool is_causal, int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes)};
        const std::vector<Attention> sequences =
            attend_packed(tensor(q), tensor(k), tensor(v), ends_of(cum_seq_q), ends_of(cum_seq_kv), softmax_scale,
                          sight, dropping(p_dropout, gen));
        write(attention_out, packed_out(sequences));
        write(softmax_lse, padded_log_sums(sequences, max_seqlen_q));
    });
}

diopiError_t diopiFlashAttentionVarLenBackward(
    diopiContextHandle_t, diopiTensorHandle_t grad_q, diopiTensorHandle_t grad_k, diopiTensorHandle_t grad_v,
    diopiConstTensorHandle_t grad_output, diopiGeneratorHandle_t gen, diopiConstTensorHandle_t q,
    diopiConstTensorHandle_t k, diopiConstTensorHandle_t v, diopiConstTensorHandle_t cum_seq_q,
    diopiConstTensorHandle_t cum_seq_kv, diopiConstTensorHandle_t alibi_slopes, diopiConstTensorHandle_t,
    diopiConstTensorHandle_t, int32_t, int32_t, float p_dropout, float softmax_scale, bool is_causal,
    int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes)};
        const Dropout dropout = dropping_again(p_dropout, gen);
        Gradients{grad_q, grad_k, grad_v}.write_all(
            gradients(Inputs{q, k, v}.tensors(), {tensor(grad_output)}, [&](const Tensors& qkv) {
                return Tensors{packed_out(attend_packed(qkv[0], qkv[1], qkv[2], ends_of(cum_seq_q), ends_of(cum_seq_kv),
                                                        softmax_scale, sight, dropout))};
            }));
    });
}

diopiError_t diopiCustomizedFlashAttention(diopiContextHandle_t ctx, diopiTensorHandle_t attention_out,
                                           diopiTensorHandle_t* dropout_mask, diopiTensorHandle_t* softmax_max,
                                           diopiTensorHandle_t* softmax_sum, diopiTensorHandle_t* softmax_out,
                                           diopiGeneratorHandle_t gen, diopiConstTensorHandle_t q,
                                           diopiConstTensorHandle_t k, diopiConstTensorHandle_t v,
                                           diopiConstTensorHandle_t alibi_slopes,
                                           diopiConstTensorHandle_t attention_mask, float p_dropout,
                                           float softmax_scale, bool is_causal, int32_t window_size_left,
                                           int32_t window_size_right, int32_t head_num, const char* input_layout) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes),
                          or_undefined(attention_mask)};
        const Attention attention = attend_layout(Inputs{q, k, v}.tensors(), input_layout, head_num, softmax_scale,
                                                  sight, dropping(p_dropout, gen));
        write(attention_out, in_layout(attention.out, input_layout));
        keep(ctx, {dropout_mask, softmax_max, softmax_sum, softmax_out}, attention.scores.amax({-1}),
             sum_of(attention.scores), attention.kept);
    });
}

diopiError_t diopiCustomizedFlashAttentionBackward(
    diopiContextHandle_t, diopiTensorHandle_t grad_q, diopiTensorHandle_t grad_k, diopiTensorHandle_t grad_v,
    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
    diopiConstTensorHandle_t v, diopiConstTensorHandle_t alibi_slopes, diopiConstTensorHandle_t,
    diopiConstTensorHandle_t attention_mask, diopiConstTensorHandle_t dropout_mask, diopiConstTensorHandle_t,
    diopiConstTensorHandle_t, diopiConstTensorHandle_t, float p_dropout, float softmax_scale, bool is_causal,
    int32_t window_size_left, int32_t window_size_right, int32_t head_num, const char* input_layout) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes),
                          or_undefined(attention_mask)};
        const Dropout dropout = dropping_by(p_dropout, dropout_mask);
        Gradients{grad_q, grad_k, grad_v}.write_all(
            gradients(Inputs{q, k, v}.tensors(), {tensor(grad_output)}, [&](const Tensors& qkv) {
                const Attention attention = attend_layout(qkv, input_layout, head_num, softmax_scale, sight, dropout);
                return Tensors{in_layout(attention.out, input_layout)};
            }));
    });
}

diopiError_t diopiCustomizedFlashAttentionVarLen(
    diopiContextHandle_t ctx, diopiTensorHandle_t attention_out, diopiTensorHandle_t* dropout_mask,
    diopiTensorHandle_t* softmax_max, diopiTensorHandle_t* softmax_sum, diopiTensorHandle_t* softmax_out,
    diopiGeneratorHandle_t gen, diopiConstTensorHandle_t q, diopiConstTensorHandle_t k, diopiConstTensorHandle_t v,
    diopiSize_t cum_seq_q, diopiSize_t cum_seq_kv, diopiConstTensorHandle_t alibi_slopes,
    diopiConstTensorHandle_t attention_mask, int32_t, int32_t, float p_dropout, float softmax_scale, bool is_causal,
    int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes),
                          or_undefined(attention_mask)};
        const std::vector<Attention> sequences =
            attend_packed(tensor(q), tensor(k), tensor(v), ends_of(cum_seq_q), ends_of(cum_seq_kv), softmax_scale,
                          sight, dropping(p_dropout, gen));
        write(attention_out, packed_out(sequences));
        std::vector<at::Tensor> greatest, total;
        for (const Attention& one : sequences) {
            greatest.push_back(one.scores.amax({-1}).transpose(0, 1));
            total.push_back(sum_of(one.scores).transpose(0, 1));
        }
        keep(ctx, {dropout_mask, softmax_max, softmax_sum, softmax_out}, at::cat(greatest), at::cat(total),
             packed_kept(sequences));
    });
}

diopiError_t diopiCustomizedFlashAttentionVarLenBackward(
    diopiContextHandle_t, diopiTensorHandle_t grad_q, diopiTensorHandle_t grad_k, diopiTensorHandle_t grad_v,
    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
    diopiConstTensorHandle_t v, diopiSize_t cum_seq_q, diopiSize_t cum_seq_kv, diopiConstTensorHandle_t alibi_slopes,
    diopiConstTensorHandle_t, diopiConstTensorHandle_t attention_mask, diopiConstTensorHandle_t dropout_mask,
    diopiConstTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t, int32_t, int32_t, float p_dropout,
    float softmax_scale, bool is_causal, int32_t window_size_left, int32_t window_size_right) {
    return guarded([&] {
        const Sight sight{is_causal, window_size_left, window_size_right, or_undefined(alibi_slopes),
                          or_undefined(attention_mask)};
        const Dropout dropout = dropping_by(p_dropout, dropout_mask);
        Gradients{grad_q, grad_k, grad_v}.write_all(
            gradients(Inputs{q, k, v}.tensors(), {tensor(grad_output)}, [&](const Tensors& qkv) {
                return Tensors{packed_out(attend_packed(qkv[0], qkv[1], qkv[2], ends_of(cum_seq_q), ends_of(cum_seq_kv),
                                                        softmax_scale, sight, dropout))};
            }));
    });
}

}  // namespace impl::torch
