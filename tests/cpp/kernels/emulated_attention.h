// A launcher of plain loops that has vendor cuda's attention of float32, whose threads take turns on a host.
#pragma once

// clang-format off
#include "launch/host.h"
#include "launch/library_attention.h"
// clang-format on

#include "core/error.h"
#include "float_attention.h"

#define DIOPI_LAUNCHER_HAS_ATTENTION

namespace diopi::launch {

inline int attention_calls;
extern "C" __attribute__((used, visibility("default"))) inline int float_attention_calls() { return attention_calls; }

inline bool drops_as_told(diopiDtype_t dtype) { return dtype == diopi_dtype_float32; }

inline bool has_attention(const LibraryAttention& problem) {
    return problem.dtype == diopi_dtype_float32 && has_float_attention(problem);
}

inline diopiError_t attend(diopiStreamHandle_t stream, const LibraryAttention& problem, const AttentionRows& rows,
                           const Workspace& workspace) {
    ++attention_calls;
    return kernels::guarded([&] { attend_floats(stream, problem, rows, workspace); });
}

}  // namespace diopi::launch
