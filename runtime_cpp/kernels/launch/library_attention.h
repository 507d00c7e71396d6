// Attention by a vendor's library, for launchers that have it: they define DIOPI_LAUNCHER_HAS_ATTENTION and these
// functions.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "library_product.h"

namespace diopi::launch {

enum class AttentionStep { kForward, kBackward };

// Of rows of channels, in elements; the channels lie side by side.
struct AttentionStrides {
    int64_t sequence, token, head;
};

// Rows of channels: what both steps have, and what the backward step has beside it.
// clang-format off
enum AttentionPart { kQueries, kKeys, kValues, kAttended, kGradAttended, kGradQueries, kGradKeys, kGradValues, kAttentionParts };
// clang-format on

// Sequences of one length. A head of k and v serves `heads / shared_heads` of q, one behind the other.
// All rows are of `dtype`, and start at multiples of 16 bytes.
struct LibraryAttention {
    AttentionStep step;
    diopiDtype_t dtype;
    int64_t sequences, heads, shared_heads, queries, keys, channels;
    double scale;    // of the products of queries and keys
    bool causal;     // the last query stands at the last key, and none sees a key behind its own
    bool keeps_sums; // the forward step writes `log_sums`
    double dropout;  // with which probability a weight is dropped; 0: nothing is drawn
    AttentionStrides strides[kAttentionParts];
};

// Of random numbers, far from each other, for a library that takes a problem in parts.
constexpr int kDraws = 16;
constexpr int kStreamAt = 1 + kDraws;

struct AttentionRows {
    void* of[kAttentionParts];  // the backward step reads what the forward step wrote
    float* log_sums;  // (sequence, head, query) without gaps: the natural logarithm of each softmax's sum
    // On the device, another for each call, the same for both its steps. kDraws offsets follow, and at kStreamAt the
    // seed and the offset of the stream by which the portable kernels drop.
    const uint64_t* seed;
};

// Whether it drops what the portable kernels drop.
bool drops_as_told(diopiDtype_t dtype);

// False where the library has no kernel for it that gives the same bits in every run; the portable ones serve then.
bool has_attention(const LibraryAttention& problem);

diopiError_t attend(diopiStreamHandle_t stream, const LibraryAttention& problem, const AttentionRows& rows,
                    const Workspace& workspace);

}  // namespace diopi::launch
