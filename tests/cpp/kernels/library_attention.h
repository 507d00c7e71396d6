// A launcher of plain loops that has attention by a library: loops over where the problem says that the rows are. It can
// be told to have no backward step, or none for rows with gaps.
#pragma once

// clang-format off
#include "launch/host.h"
#include "launch/library_attention.h"
// clang-format on

#include <cmath>
#include <vector>

#include "core/half.h"

#define DIOPI_LAUNCHER_HAS_ATTENTION

namespace diopi::launch {

inline int attention_calls[2];  // by step

// What the tests ask.
extern "C" __attribute__((used, visibility("default"))) inline int library_attention_calls(int step) {
    return attention_calls[step];
}

inline bool attention_lacks_backward, attention_lacks_gaps;
extern "C" __attribute__((used, visibility("default"))) inline void library_attention_lacks(bool backward, bool gaps) {
    attention_lacks_backward = backward;
    attention_lacks_gaps = gaps;
}

inline bool drops_as_told(diopiDtype_t) { return false; }

inline bool has_attention(const LibraryAttention& p) {
    if (p.step == AttentionStep::kBackward && attention_lacks_backward) return false;
    if (p.strides[kQueries].token != p.heads * p.channels && attention_lacks_gaps) return false;
    return p.dtype == diopi_dtype_float16;
}

// What dropout makes of a weight: it drops by seed, offset and place.
inline double kept(const LibraryAttention& p, const AttentionRows& rows, int64_t sequence, int64_t head, int64_t i,
                   int64_t j) {
    if (p.dropout == 0) return 1;
    const auto at = static_cast<uint64_t>(((sequence * p.heads + head) * p.queries + i) * p.keys + j);
    const uint64_t mixed = (rows.seed[0] + rows.seed[1] + at) * 0x9E3779B97F4A7C15u;
    return static_cast<double>(mixed >> 11) * 0x1p-53 >= p.dropout ? 1 / (1 - p.dropout) : 0;
}

// One head's rows of channels.
struct HalfRows {
    kernels::Half* first;
    int64_t token;

    HalfRows(const LibraryAttention& p, const AttentionRows& rows, AttentionPart part, int64_t sequence, int64_t head)
        : first(static_cast<kernels::Half*>(rows.of[part]) + sequence * p.strides[part].sequence +
                head * p.strides[part].head),
          token(p.strides[part].token) {}
    kernels::Half& at(int64_t i, int64_t c) const { return first[i * token + c]; }
    double product(int64_t i, const HalfRows& other, int64_t j, int64_t channels) const {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c)
            sum += static_cast<double>(at(i, c)) * static_cast<double>(other.at(j, c));
        return sum;
    }
};

inline int64_t keys_seen(const LibraryAttention& p, int64_t query) {
    return p.causal ? query + 1 + p.keys - p.queries : p.keys;
}

inline void attend_head(const LibraryAttention& p, const AttentionRows& rows, int64_t sequence, int64_t head) {
    const int64_t shared = head / (p.heads / p.shared_heads);
    const HalfRows q(p, rows, kQueries, sequence, head), k(p, rows, kKeys, sequence, shared),
        v(p, rows, kValues, sequence, shared);
    const HalfRows out(p, rows, kAttended, sequence, head);
    for (int64_t i = 0; i < p.queries; ++i) {
        double sum = 0;
        std::vector<double> mix(static_cast<size_t>(p.channels));
        for (int64_t j = 0; j < keys_seen(p, i); ++j) {
            const double power = std::exp(p.scale * q.product(i, k, j, p.channels));
            const double factor = kept(p, rows, sequence, head, i, j);
            sum += power;
            for (int64_t c = 0; c < p.channels; ++c)
                mix[static_cast<size_t>(c)] += factor * power * static_cast<double>(v.at(j, c));
        }
        for (int64_t c = 0; c < p.channels; ++c)
            out.at(i, c) = kernels::Half(static_cast<float>(mix[static_cast<size_t>(c)] / sum));
        if (p.keeps_sums)
            rows.log_sums[(sequence * p.heads + head) * p.queries + i] = static_cast<float>(std::log(sum));
    }
}

// The gradients of one head of keys and values, and of the heads of queries that it serves.
inline void attend_head_backward(const LibraryAttention& p, const AttentionRows& rows, int64_t sequence,
                                 int64_t shared) {
    const HalfRows k(p, rows, kKeys, sequence, shared), v(p, rows, kValues, sequence, shared);
    const int64_t share = p.heads / p.shared_heads, channels = p.channels;
    std::vector<double> of_k(static_cast<size_t>(p.keys * channels)), of_v(of_k.size());
    for (int64_t head = shared * share; head < (shared + 1) * share; ++head) {
        const HalfRows q(p, rows, kQueries, sequence, head), out(p, rows, kAttended, sequence, head);
        const HalfRows grad(p, rows, kGradAttended, sequence, head), grad_q(p, rows, kGradQueries, sequence, head);
        for (int64_t i = 0; i < p.queries; ++i) {
            const double log_sum = static_cast<double>(rows.log_sums[(sequence * p.heads + head) * p.queries + i]);
            const double mean = grad.product(i, out, i, channels);
            std::vector<double> of_q(static_cast<size_t>(channels));
            for (int64_t j = 0; j < keys_seen(p, i); ++j) {
                const double weight = std::exp(p.scale * q.product(i, k, j, channels) - log_sum);
                const double factor = kept(p, rows, sequence, head, i, j);
                const double slope = weight * (factor * grad.product(i, v, j, channels) - mean) * p.scale;
                for (int64_t c = 0; c < channels; ++c) {
                    of_q[static_cast<size_t>(c)] += slope * static_cast<double>(k.at(j, c));
                    of_k[static_cast<size_t>(j * channels + c)] += slope * static_cast<double>(q.at(i, c));
                    of_v[static_cast<size_t>(j * channels + c)] += factor * weight * static_cast<double>(grad.at(i, c));
                }
            }
            for (int64_t c = 0; c < channels; ++c)
                grad_q.at(i, c) = kernels::Half(static_cast<float>(of_q[static_cast<size_t>(c)]));
        }
    }
    const HalfRows grad_k(p, rows, kGradKeys, sequence, shared), grad_v(p, rows, kGradValues, sequence, shared);
    for (int64_t i = 0; i < p.keys * channels; ++i) {
        grad_k.at(i / channels, i % channels) = kernels::Half(static_cast<float>(of_k[static_cast<size_t>(i)]));
        grad_v.at(i / channels, i % channels) = kernels::Half(static_cast<float>(of_v[static_cast<size_t>(i)]));
    }
}

// As cuDNN asks for.
inline bool are_aligned(const AttentionRows& rows) {
    for (const void* each : rows.of) {
        if (reinterpret_cast<uintptr_t>(each) % 16 != 0) return false;
    }
    return true;
}

inline diopiError_t attend(diopiStreamHandle_t, const LibraryAttention& p, const AttentionRows& rows,
                           const Workspace&) {
    if (!are_aligned(rows)) return diopiErrorOccurred;
    const bool forward = p.step == AttentionStep::kForward;
    ++attention_calls[forward ? 0 : 1];
    for (int64_t sequence = 0; sequence < p.sequences; ++sequence) {
        for (int64_t head = 0; head < (forward ? p.heads : p.shared_heads); ++head)
            forward ? attend_head(p, rows, sequence, head) : attend_head_backward(p, rows, sequence, head);
    }
    return diopiSuccess;
}

}  // namespace diopi::launch
