// Multi-head attention of whole batches and of sequences one behind the other: the forms before flash attention.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <diopi/functions_ext.h>

#include "aten/call.h"
#include "aten/gradients.h"
#include "functions/attend.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// Which weights were kept, all of them if nothing is dropped.
at::Tensor kept_of(const Attention& attention) {
    return attention.kept.defined() ? attention.kept : at::ones_like(attention.scores, at::kBool);
}

at::Tensor padded_kept(const std::vector<Attention>& sequences, int64_t longest_q, int64_t longest_k) {
    std::vector<at::Tensor> kept;
    for (const Attention& one : sequences) {
        const at::Tensor of_one = kept_of(one);
        const int64_t rest_q = longest_q - of_one.size(-2);
        kept.push_back(at::constant_pad_nd(of_one, {0, longest_k - of_one.size(-1), 0, rest_q}, 0));
    }
    return at::stack(kept);
}

}  // namespace

diopiError_t diopiMultiHeadAttention(diopiContextHandle_t, diopiTensorHandle_t q, diopiTensorHandle_t k,
                                     diopiTensorHandle_t v, double dropout_p, bool is_causal, bool return_debug_mask,
                                     double scale, diopiTensorHandle_t out, diopiTensorHandle_t softmax_lse,
                                     diopiGeneratorHandle_t gen, diopiTensorHandle_t debug_attn_mask) {
    return guarded([&] {
        const Dropout dropout = dropping(dropout_p, gen);
        const Attention attention = attend(heads_swapped(tensor(q)), heads_swapped(tensor(k)), heads_swapped(tensor(v)),
                                           scale, {.causal = is_causal}, dropout);
        write(out, heads_swapped(attention.out));
        write(softmax_lse, at::logsumexp(attention.scores, {-1}));
        if (return_debug_mask) write(debug_attn_mask, kept_of(attention));
    });
}

diopiError_t diopiMultiHeadAttentionBackward(diopiContextHandle_t, diopiConstTensorHandle_t grad_out,
                                             diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
                                             diopiConstTensorHandle_t v, diopiConstTensorHandle_t,
                                             diopiConstTensorHandle_t, double dropout_p, bool is_causal,
                                             diopiGeneratorHandle_t gen, double scale, diopiTensorHandle_t grad_q,
                                             diopiTensorHandle_t grad_k, diopiTensorHandle_t grad_v) {
    return guarded([&] {
        const Dropout dropout = dropping_again(dropout_p, gen);
        const auto forward = [&](const Tensors& in) {
            return Tensors{heads_swapped(attend(heads_swapped(in[0]), heads_swapped(in[1]), heads_swapped(in[2]), scale,
                                                {.causal = is_causal}, dropout)
                                             .out)};
        };
        const Tensors grads = gradients({tensor(q), tensor(k), tensor(v)}, {tensor(grad_out)}, forward);
        write(grad_q, grads[0]);
        write(grad_k, grads[1]);
        write(grad_v, grads[2]);
    });
}

diopiError_t diopiMultiHeadAttentionVarLen(diopiContextHandle_t, diopiTensorHandle_t q, diopiTensorHandle_t k,
                                           diopiTensorHandle_t v, diopiConstTensorHandle_t cum_seq_q,
                                           diopiConstTensorHandle_t cum_seq_k, int64_t max_q, int64_t max_k,
                                           double dropout_p, bool is_causal, bool return_debug_mask, double scale,
                                           diopiTensorHandle_t out, diopiTensorHandle_t softmax_lse,
                                           diopiGeneratorHandle_t gen, diopiTensorHandle_t debug_attn_mask) {
    return guarded([&] {
        const std::vector<Attention> sequences =
            attend_packed(tensor(q), tensor(k), tensor(v), ends_of(cum_seq_q), ends_of(cum_seq_k), scale,
                          {.causal = is_causal}, dropping(dropout_p, gen));
        write(out, packed_out(sequences));
        write(softmax_lse, padded_log_sums(sequences, max_q));
        if (return_debug_mask) write(debug_attn_mask, padded_kept(sequences, max_q, max_k));
    });
}

diopiError_t diopiMultiHeadAttentionVarLenBackward(
    diopiContextHandle_t, diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
    diopiConstTensorHandle_t v, diopiConstTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t cum_seq_q,
    diopiConstTensorHandle_t cum_seq_k, int64_t, int64_t, double dropout_p, bool is_causal, diopiGeneratorHandle_t gen,
    double scale, diopiTensorHandle_t grad_q, diopiTensorHandle_t grad_k, diopiTensorHandle_t grad_v) {
    return guarded([&] {
        const Dropout dropout = dropping_again(dropout_p, gen);
        const auto forward = [&](const Tensors& in) {
            return Tensors{packed_out(attend_packed(in[0], in[1], in[2], ends_of(cum_seq_q), ends_of(cum_seq_k), scale,
                                                    {.causal = is_causal}, dropout))};
        };
        const Tensors grads = gradients({tensor(q), tensor(k), tensor(v)}, {tensor(grad_out)}, forward);
        write(grad_q, grads[0]);
        write(grad_k, grads[1]);
        write(grad_v, grads[2]);
    });
}

}  // namespace impl::torch
