// This thread's cuBLAS, and in what it computes: products of halves are summed in float32, those of float32 without
// shortened factors unless the framework allows it.
#pragma once

#include <cublas_v2.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <limits>

#include "core/error.h"
#include "launch/precision.h"

namespace diopi::launch {

inline void check_cublas(cublasStatus_t status, const char* what) {
    kernels::require(status == CUBLAS_STATUS_SUCCESS, "%s: %s", what, cublasGetStatusString(status));
}

inline int extent(int64_t value) {
    kernels::require(value >= 0 && value <= std::numeric_limits<int>::max(),
                     "a matrix of extent %lld is beyond what cuBLAS takes", value);
    return static_cast<int>(value);
}

// That of the current device, with its work on `stream`.
cublasHandle_t cublas_on(cudaStream_t stream);

struct GemmKind {
    cudaDataType_t data;
    cublasComputeType_t compute;
};

inline bool gemm_kind(diopiDtype_t dtype, GemmKind* kind) {
    switch (dtype) {
        case diopi_dtype_float16: *kind = {CUDA_R_16F, CUBLAS_COMPUTE_32F}; return true;
        case diopi_dtype_bfloat16: *kind = {CUDA_R_16BF, CUBLAS_COMPUTE_32F}; return true;
        case diopi_dtype_float32:
            *kind = {CUDA_R_32F, may_round(diopi_products) ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
            return true;
        case diopi_dtype_float64: *kind = {CUDA_R_64F, CUBLAS_COMPUTE_64F}; return true;
        default: return false;
    }
}

}  // namespace diopi::launch
