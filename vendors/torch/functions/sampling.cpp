// From logits to the next token: penalties and bans, then a draw from the likeliest tokens.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <diopi/functions_lmdeploy.h>

#include <limits>

#include "aten/call.h"
#include "aten/wide.h"
#include "functions/words.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

constexpr double kTemperatureFloor = 1e-6;
constexpr int64_t kLargestK = 1024;
enum PenaltyType : int64_t { kNoPenalty, kAdditive, kMultiplicative };

double lowest(at::ScalarType type) {
    switch (type) {
        case at::kHalf: return std::numeric_limits<at::Half>::lowest();
        case at::kBFloat16: return std::numeric_limits<at::BFloat16>::lowest();
        case at::kFloat: return std::numeric_limits<float>::lowest();
        default: return std::numeric_limits<double>::lowest();
    }
}

at::Tensor penalized(const at::Tensor& logits, const at::Tensor& penalty, int64_t type) {
    if (type == kAdditive) return logits - penalty;
    return at::where(logits.lt(0), logits * penalty, logits / penalty);
}

// What each sequence brings itself, or the same for all.
at::Tensor own_or(const at::Tensor& own, int64_t size, const at::Scalar& common) {
    return size > 0 ? own.clone() : at::full_like(own, common);
}

double share_or(float share, double otherwise) { return share > 0 && share <= 1 ? share : otherwise; }

// The state of a batch that a draw changes; what is not wanted is undefined.
struct Batch {
    at::Tensor row;  // of the tokens that are written
    at::Tensor end_ids;
    at::Tensor finished;
    at::Tensor lengths;
    at::Tensor skipped;
    at::Tensor cum_log_probs;
    at::Tensor output_log_probs;
};

at::Tensor or_undefined(diopiConstTensorHandle_t handle) { return handle == nullptr ? at::Tensor() : tensor(handle); }

bool is_set(const at::Tensor& flags, int64_t b) { return flags.defined() && flags[b].item<bool>(); }

// Draws one of the candidates, likeliest first, of which those past the share `p` are left out.
void draw(const Batch& batch, int64_t b, const at::Tensor& log_probs, const at::Tensor& tokens, double p,
          diopiGeneratorHandle_t gen) {
    const at::Tensor sums = log_probs.exp().cumsum(0);
    const double limit = at::rand({1}, generator(gen), sums.options()).item<double>() * p * sums[-1].item<double>();
    const int64_t place = std::min(sums.lt(limit).sum().item<int64_t>(), sums.size(0) - 1);
    const at::Tensor token = tokens[place];
    batch.row[b].copy_(token);
    if (batch.cum_log_probs.defined()) batch.cum_log_probs[b].add_(log_probs[place]);
    if (batch.output_log_probs.defined()) batch.output_log_probs[b].copy_(log_probs[place] - sums[-1].log());
    if (batch.lengths.defined() && batch.finished.defined()) batch.lengths[b].add_(1);
    if (batch.finished.defined()) batch.finished[b].copy_(token.eq(batch.end_ids[b]));
}

// Whether sequence `b` takes no new token; a finished one gets its end again.
bool rests(const Batch& batch, int64_t b) {
    if (is_set(batch.skipped, b)) return true;
    if (!is_set(batch.finished, b)) return false;
    batch.row[b].copy_(batch.end_ids[b]);
    return true;
}

// A call for the size of a workspace; ATen needs none.
bool asks_for_size(int64_t* size) {
    if (size == nullptr || *size >= 0) return false;
    *size = 0;
    return true;
}

}  // namespace

diopiError_t diopiBatchApplyTemperaturePenaltyInp(diopiContextHandle_t, diopiTensorHandle_t logits,
                                                  diopiConstTensorHandle_t bias, diopiConstTensorHandle_t temperatures,
                                                  const int64_t, const int64_t vocab_size, const int64_t) {
    return guarded([&] {
        at::Tensor target = tensor(logits);
        at::Tensor words = wide(target.slice(1, 0, vocab_size));
        const at::Tensor divisor = tensor(temperatures).to(words.scalar_type()).unsqueeze(1) + kTemperatureFloor;
        if (bias != nullptr) words = words + tensor(bias).slice(0, 0, vocab_size);
        target.slice(1, 0, vocab_size).copy_(words / divisor);
        target.slice(1, vocab_size).fill_(lowest(target.scalar_type()));
    });
}

diopiError_t diopiBatchApplyRepetitionPenaltyInp(diopiContextHandle_t, diopiTensorHandle_t logits,
                                                 diopiConstTensorHandle_t penalties,
                                                 diopiConstTensorHandle_t output_ids, const int64_t batch_size,
                                                 const int64_t, diopiConstTensorHandle_t input_lengths,
                                                 const int64_t max_input_length, const int64_t step,
                                                 const int64_t penalty_type) {
    return guarded([&] {
        if (penalty_type == kNoPenalty) return;
        for (int64_t b = 0; b < batch_size; ++b) {
            at::Tensor row = tensor(logits)[b];
            const at::Tensor column = tensor(output_ids).select(1, b).slice(0, 0, step).to(at::kLong);
            const int64_t own = input_lengths == nullptr ? max_input_length : tensor(input_lengths)[b].item<int64_t>();
            const at::Tensor tokens = at::cat({column.slice(0, 0, own), column.slice(0, max_input_length)});
            const at::Tensor old = wide(row.index_select(0, tokens));
            const at::Tensor fresh = penalized(old, tensor(penalties)[b].to(old.scalar_type()), penalty_type);
            row.index_copy_(0, tokens, fresh.to(row.scalar_type()));
        }
    });
}

diopiError_t diopiBanBadWordsInp(diopiContextHandle_t, diopiTensorHandle_t logits, diopiConstTensorHandle_t output_ids,
                                 diopiConstTensorHandle_t bad_words, int64_t id_offset, int64_t, bool share_words,
                                 int64_t batch_size, int64_t vocab_size, int64_t step) {
    return guarded([&] {
        at::Tensor target = tensor(logits);
        for (int64_t b = 0; b < batch_size; ++b) {
            const Tokens tokens = tokens_of(tensor(output_ids).select(1, id_offset + b).slice(0, 0, step));
            for (Tokens word : words_of(share_words ? tensor(bad_words) : tensor(bad_words)[b])) {
                if (word.empty()) continue;
                const int64_t last = word.back();
                word.pop_back();
                if (last <= 0 || last >= vocab_size || !ends_with(tokens, word)) continue;
                target[b][last].fill_(-std::numeric_limits<double>::infinity());
            }
        }
    });
}

diopiError_t diopiSetupTopkRuntimeArgsInp(diopiContextHandle_t, diopiTensorHandle_t top_ks, diopiTensorHandle_t top_ps,
                                          diopiTensorHandle_t skip_decode, int64_t, int64_t top_k, int64_t top_ks_size,
                                          float top_p, int64_t top_ps_size) {
    return guarded([&] {
        at::Tensor k = own_or(tensor(top_ks), top_ks_size, top_k);
        at::Tensor p = own_or(tensor(top_ps), top_ps_size, top_p);
        k.masked_fill_(k.eq(0).logical_and(p.eq(0)), 1);
        p.masked_fill_(k.gt(0).logical_and(p.eq(0)), 1);
        write(top_ks, k.clamp_max(kLargestK));
        write(top_ps, p.clamp(0, 1));
        write(skip_decode, k.eq(0));
    });
}

diopiError_t diopiSetupToppRuntimeArgsInp(diopiContextHandle_t, diopiTensorHandle_t top_ks, diopiTensorHandle_t top_ps,
                                          diopiTensorHandle_t skip_decode, int64_t, int64_t top_k, int64_t top_ks_size,
                                          float top_p, int64_t top_ps_size, diopiTensorHandle_t initial_top_p_buf,
                                          diopiTensorHandle_t top_p_decay_buf, float top_p_decay,
                                          diopiTensorHandle_t top_p_min_buf, float top_p_min,
                                          diopiTensorHandle_t top_p_reset_ids_buf, int64_t top_p_reset_ids) {
    return guarded([&] {
        at::Tensor k = own_or(tensor(top_ks), top_ks_size, top_k);
        const at::Tensor p = own_or(tensor(top_ps), top_ps_size, top_p).clamp(0, 1);
        k.masked_fill_(k.eq(0).logical_and(p.eq(0)), 1);
        write(top_ks, k);
        write(top_ps, p);
        write(skip_decode, k.gt(0));
        write(initial_top_p_buf, p);
        write(top_p_decay_buf, at::full_like(p, share_or(top_p_decay, 1.0)));
        write(top_p_min_buf, at::full_like(p, share_or(top_p_min, 0.5)));
        write(top_p_reset_ids_buf, at::full_like(k, top_p_reset_ids));
    });
}

diopiError_t diopiTopKSampling(diopiContextHandle_t, diopiTensorHandle_t output_ids, diopiTensorHandle_t logits,
                               diopiTensorHandle_t, int64_t* workspace_size, int64_t, diopiConstTensorHandle_t end_ids,
                               diopiTensorHandle_t finished, diopiTensorHandle_t sequence_lengths, int64_t step,
                               int64_t batch_size, int64_t vocab_size_padded, diopiConstTensorHandle_t runtime_top_k,
                               diopiConstTensorHandle_t runtime_top_p, diopiConstTensorHandle_t skip_decode,
                               diopiTensorHandle_t cum_log_probs, diopiTensorHandle_t output_log_probs,
                               diopiGeneratorHandle_t* generators) {
    return guarded([&] {
        if (asks_for_size(workspace_size)) return;
        const Batch batch{tensor(output_ids)[step],       tensor(end_ids),           or_undefined(finished),
                          or_undefined(sequence_lengths), or_undefined(skip_decode), or_undefined(cum_log_probs),
                          or_undefined(output_log_probs)};
        const at::Tensor log_probs = at::log_softmax(wide(tensor(logits)).slice(1, 0, vocab_size_padded), 1);
        for (int64_t b = 0; b < batch_size; ++b) {
            if (rests(batch, b)) continue;
            const int64_t k = std::min(tensor(runtime_top_k)[b].item<int64_t>(), vocab_size_padded);
            const auto [likeliest, tokens] = at::topk(log_probs[b], k);
            draw(batch, b, likeliest, tokens, tensor(runtime_top_p)[b].item<double>(), generators[b]);
        }
    });
}

diopiError_t diopiTopPSampling(diopiContextHandle_t, diopiTensorHandle_t output_ids, diopiTensorHandle_t logits,
                               diopiTensorHandle_t, int64_t* persistent_workspace_size, diopiTensorHandle_t,
                               int64_t* workspace_size, int64_t, diopiConstTensorHandle_t end_ids,
                               diopiTensorHandle_t finished, diopiTensorHandle_t sequence_lengths, int64_t step,
                               int64_t batch_size, int64_t vocab_size_padded, diopiTensorHandle_t runtime_top_p,
                               diopiConstTensorHandle_t skip_decode, diopiTensorHandle_t cum_log_probs,
                               diopiTensorHandle_t output_log_probs, diopiGeneratorHandle_t* generators) {
    return guarded([&] {
        const bool persistent_size = asks_for_size(persistent_workspace_size);
        if (asks_for_size(workspace_size) || persistent_size) return;
        const Batch batch{tensor(output_ids)[step],       tensor(end_ids),           or_undefined(finished),
                          or_undefined(sequence_lengths), or_undefined(skip_decode), or_undefined(cum_log_probs),
                          or_undefined(output_log_probs)};
        const at::Tensor log_probs = at::log_softmax(wide(tensor(logits)).slice(1, 0, vocab_size_padded), 1);
        for (int64_t b = 0; b < batch_size; ++b) {
            if (rests(batch, b)) continue;
            const auto [likeliest, tokens] = at::sort(log_probs[b], 0, true);
            draw(batch, b, likeliest, tokens, tensor(runtime_top_p)[b].item<double>(), generators[b]);
        }
    });
}

}  // namespace impl::torch
