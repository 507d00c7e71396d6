// Language models at work, sequence by sequence: penalties, the cache of keys and values, attention over it.
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <diopi/functions_ext.h>

#include <cmath>

#include "aten/call.h"
#include "aten/wide.h"
#include "functions/attend.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor positions(diopiConstTensorHandle_t handle) { return tensor(handle).to(at::kLong); }

double scale_of(int64_t channels) { return 1 / std::sqrt(static_cast<double>(channels)); }

// Where the tokens of one sequence stand among those of all, and in which rows of the cache.
struct Sequence {
    int64_t begin;
    int64_t end;
    at::Tensor rows;
};

std::vector<Sequence> sequences_of(diopiConstTensorHandle_t b_loc, diopiConstTensorHandle_t b_start_loc,
                                   diopiConstTensorHandle_t b_seq_len, int64_t max_input_len) {
    const Ends starts = ends_of(b_start_loc);
    const Ends lengths = ends_of(b_seq_len);
    const at::Tensor locations = positions(b_loc);
    std::vector<Sequence> sequences;
    for (size_t b = 0; b < starts.size(); ++b) {
        const at::Tensor of_one = locations.select(0, static_cast<int64_t>(b));
        sequences.push_back(
            {starts[b], starts[b] + lengths[b], of_one.slice(0, max_input_len - lengths[b], max_input_len)});
    }
    return sequences;
}

// (head, token, channel) from rows that hold all heads of a token.
at::Tensor heads_first(const at::Tensor& rows, int64_t heads) {
    return heads_swapped(rows.reshape({rows.size(0), heads, -1}));
}

at::Tensor rows_of(const at::Tensor& heads) { return heads_swapped(heads).flatten(-2); }

// The rows of a cache that the first `length` tokens of a sequence lie in, block by block.
at::Tensor rows_in_blocks(const at::Tensor& blocks, int64_t block_size, int64_t length) {
    const at::Tensor within = at::arange(block_size, at::kLong);
    return (blocks.unsqueeze(1) * block_size + within).flatten().slice(0, 0, length);
}

// Calls an operator of PyTorch's collectives, which are there once the process has loaded them.
at::Tensor collective(const char* name, std::vector<c10::IValue> stack) {
    const auto found = c10::Dispatcher::singleton().findSchema({std::string("_c10d_functional::") + name, ""});
    if (!found) refuse("a reduction over processes, without torch.distributed");
    found->callBoxed(&stack);
    return stack.at(0).toTensor();
}

at::Tensor reduced_over(const at::Tensor& part, const char* group, const char* reduce_op) {
    if (group == nullptr || *group == '\0') return part;
    return collective("wait_tensor", {collective("all_reduce", {part, std::string(reduce_op), std::string(group)})});
}

}  // namespace

diopiError_t diopiApplyPenalty(diopiContextHandle_t, diopiTensorHandle_t logits,
                               diopiConstTensorHandle_t presence_penalty, diopiConstTensorHandle_t frequency_penalty,
                               diopiConstTensorHandle_t p_token_ids, diopiConstTensorHandle_t p_token_counts,
                               diopiConstTensorHandle_t p_cumsum_seq_len, int) {
    return guarded([&] {
        const at::Tensor presence = wide(tensor(presence_penalty));
        const at::Tensor frequency = wide(tensor(frequency_penalty));
        const at::Tensor ids = positions(p_token_ids);
        const at::Tensor counts = tensor(p_token_counts);
        const Ends ends = ends_of(p_cumsum_seq_len);
        const at::Tensor all = tensor(logits);
        for (size_t i = 0; i + 1 < ends.size(); ++i) {
            const auto b = static_cast<int64_t>(i);
            at::Tensor row = all.select(0, b);
            const at::Tensor own = ids.slice(0, ends[i], ends[i + 1]);
            const at::Tensor taken = frequency[b] * counts.slice(0, ends[i], ends[i + 1]) + presence[b];
            row.index_copy_(0, own, (wide(row.index_select(0, own)) - taken).to(row.scalar_type()));
        }
    });
}

diopiError_t diopiApplyPenaltyV2(diopiContextHandle_t, diopiTensorHandle_t logits,
                                 diopiConstTensorHandle_t presence_penalty, diopiConstTensorHandle_t frequency_penalty,
                                 diopiConstTensorHandle_t repetition_penalty, diopiConstTensorHandle_t p_token_ids,
                                 diopiConstTensorHandle_t p_token_counts) {
    return guarded([&] {
        at::Tensor target = tensor(logits);
        const at::Tensor ids = positions(p_token_ids);
        const at::Tensor flat = target.flatten();
        const at::Tensor old = wide(flat.index_select(0, ids));
        const at::Tensor repetition = wide(tensor(repetition_penalty));
        const at::Tensor fresh = at::where(old.gt(0), old / repetition, old * repetition) -
                                 wide(tensor(frequency_penalty)) * tensor(p_token_counts) -
                                 wide(tensor(presence_penalty));
        target.copy_(flat.index_copy(0, ids, fresh.to(flat.scalar_type())).view(target.sizes()));
    });
}

diopiError_t diopiDestIndexCopyKV(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t k,
                                  diopiConstTensorHandle_t dest_loc) {
    return guarded([&] { tensor(out).index_copy_(0, positions(dest_loc), tensor(k)); });
}

diopiError_t diopiTokenAttentionInference(diopiContextHandle_t, diopiTensorHandle_t token_attention_out,
                                          diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
                                          diopiConstTensorHandle_t b_loc, diopiConstTensorHandle_t b_start_loc,
                                          diopiConstTensorHandle_t b_seq_len, int max_input_len) {
    return guarded([&] {
        const at::Tensor queries = wide(tensor(q)) * scale_of(tensor(q).size(-1));
        const at::Tensor keys = tensor(k);
        const at::Tensor scores = tensor(token_attention_out);
        int64_t b = 0;
        for (const Sequence& one : sequences_of(b_loc, b_start_loc, b_seq_len, max_input_len)) {
            const at::Tensor own = wide(keys.index_select(0, one.rows));
            scores.slice(1, one.begin, one.end).copy_(at::einsum("hd,nhd->hn", {queries[b++], own}));
        }
    });
}

diopiError_t diopiTokenSoftmaxReduceVInference(diopiContextHandle_t, diopiTensorHandle_t out,
                                               diopiConstTensorHandle_t logics, diopiConstTensorHandle_t v,
                                               diopiConstTensorHandle_t b_loc, diopiConstTensorHandle_t b_start_loc,
                                               diopiConstTensorHandle_t b_seq_len, int max_input_len, int) {
    return guarded([&] {
        const at::Tensor scores = wide(tensor(logics));
        const at::Tensor values = tensor(v);
        const at::Tensor target = tensor(out);
        int64_t b = 0;
        for (const Sequence& one : sequences_of(b_loc, b_start_loc, b_seq_len, max_input_len)) {
            const at::Tensor weights = at::softmax(scores.slice(1, one.begin, one.end), -1);
            target[b++].copy_(at::einsum("hn,nhd->hd", {weights, wide(values.index_select(0, one.rows))}));
        }
    });
}

diopiError_t diopiContextAttentionInference(diopiContextHandle_t, diopiTensorHandle_t context_attention_out,
                                            diopiConstTensorHandle_t q, diopiConstTensorHandle_t k,
                                            diopiConstTensorHandle_t v, diopiConstTensorHandle_t b_start_loc,
                                            diopiConstTensorHandle_t b_seq_len, int) {
    return guarded([&] {
        const Ends starts = ends_of(b_start_loc);
        const Ends lengths = ends_of(b_seq_len);
        const at::Tensor target = tensor(context_attention_out);
        for (size_t b = 0; b < starts.size(); ++b) {
            const auto own = [&](const at::Tensor& tokens) {
                return heads_swapped(tokens.slice(0, starts[b], starts[b] + lengths[b]));
            };
            const Attention one =
                attend(own(tensor(q)), own(tensor(k)), own(tensor(v)), scale_of(target.size(-1)), {.causal = true});
            own(target).copy_(one.out);
        }
    });
}

diopiError_t diopiPromptFlashAttention(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t query,
                                       diopiConstTensorHandle_t key, diopiConstTensorHandle_t value,
                                       diopiConstTensorHandle_t atten_mask, diopiSize_t actual_seq_lengths,
                                       int64_t max_input_len, int64_t num_heads, int64_t num_kv_heads, int64_t dim) {
    return guarded([&] {
        const at::Tensor q = tensor(query).reshape({-1, num_heads * dim});
        const at::Tensor k = tensor(key).reshape({-1, num_kv_heads * dim});
        const at::Tensor v = tensor(value).reshape({-1, num_kv_heads * dim});
        at::Tensor mixed = at::zeros(q.sizes(), q.options());
        for (int64_t b = 0; b < actual_seq_lengths.len; ++b) {
            const int64_t begin = b * max_input_len;
            const int64_t end = begin + actual_seq_lengths.data[b];
            Sight sight{.causal = true};
            if (atten_mask != nullptr) {
                sight.hidden = tensor(atten_mask).slice(-1, 0, end - begin).slice(-2, 0, end - begin);
            }
            const Attention one = attend(heads_first(q.slice(0, begin, end), num_heads),
                                         heads_first(k.slice(0, begin, end), num_kv_heads),
                                         heads_first(v.slice(0, begin, end), num_kv_heads), scale_of(dim), sight);
            mixed.slice(0, begin, end).copy_(rows_of(one.out));
        }
        write(out, mixed.view(tensor(query).sizes()));
    });
}

diopiError_t diopiPagedAttention(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t q,
                                 diopiConstTensorHandle_t k, diopiConstTensorHandle_t v,
                                 diopiConstTensorHandle_t attenMask, diopiSize_t actual_seq_lengths, int64_t num_heads,
                                 int64_t num_kv_heads, int64_t dim, diopiConstTensorHandle_t block_table,
                                 int64_t block_size) {
    return guarded([&] {
        const at::Tensor queries = tensor(q).reshape({-1, 1, num_heads * dim});
        const at::Tensor keys = tensor(k).reshape({-1, num_kv_heads * dim});
        const at::Tensor values = tensor(v).reshape({-1, num_kv_heads * dim});
        at::Tensor mixed = at::zeros(queries.sizes(), queries.options());
        for (int64_t b = 0; b < actual_seq_lengths.len; ++b) {
            const int64_t length = actual_seq_lengths.data[b];
            const at::Tensor rows = rows_in_blocks(positions(block_table)[b], block_size, length);
            Sight sight;
            if (attenMask != nullptr) {
                sight.hidden = tensor(attenMask).expand({queries.size(0), -1})[b].slice(0, 0, length);
            }
            const Attention one =
                attend(heads_first(queries[b], num_heads), heads_first(keys.index_select(0, rows), num_kv_heads),
                       heads_first(values.index_select(0, rows), num_kv_heads), scale_of(dim), sight);
            mixed[b].copy_(rows_of(one.out));
        }
        write(out, mixed.view(tensor(q).sizes()));
    });
}

diopiError_t diopiMatmulAllReduce(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t x1,
                                  diopiConstTensorHandle_t x2, diopiConstTensorHandle_t bias, const char* group,
                                  const char* reduce_op, int64_t, int64_t) {
    return guarded([&] {
        at::Tensor part = at::matmul(tensor(x1), tensor(x2));
        if (bias != nullptr) part = part + tensor(bias);
        write(out, reduced_over(part, group, reduce_op));
    });
}

}  // namespace impl::torch
