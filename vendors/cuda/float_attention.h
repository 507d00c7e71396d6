// Attention of float32, which cuDNN does not have.
#pragma once

#include <cuda_runtime.h>

#include "launch/library_attention.h"

namespace diopi::launch {

// What has_attention() and attend() do for problems of float32.
bool has_float_attention(const LibraryAttention& problem);
void attend_floats(cudaStream_t stream, const LibraryAttention& problem, const AttentionRows& rows,
                   const Workspace& workspace);

}  // namespace diopi::launch
