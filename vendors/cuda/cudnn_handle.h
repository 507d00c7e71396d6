// This thread's cuDNN.
#pragma once

#include <cuda_runtime.h>
#include <cudnn.h>

#include "core/error.h"

namespace diopi::launch {

inline void check_cudnn(cudnnStatus_t status, const char* what) {
    kernels::require(status == CUDNN_STATUS_SUCCESS, "%s: %s", what, cudnnGetErrorString(status));
}

// That of the current device; work is on the stream of the last cudnn_on().
cudnnHandle_t cudnn();
cudnnHandle_t cudnn_on(cudaStream_t stream);

}  // namespace diopi::launch
