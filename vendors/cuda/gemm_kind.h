// In what cuBLAS computes: products of halves are summed in float32, those of float32 without shortened factors.
#ifndef DIOPI_CUDA_GEMM_KIND_H_
#define DIOPI_CUDA_GEMM_KIND_H_

#include <cublas_v2.h>
#include <diopi/diopirt.h>

namespace diopi::launch {

struct GemmKind {
    cudaDataType_t data;
    cublasComputeType_t compute;
};

inline bool gemm_kind(diopiDtype_t dtype, GemmKind* kind) {
    switch (dtype) {
        case diopi_dtype_float16: *kind = {CUDA_R_16F, CUBLAS_COMPUTE_32F}; return true;
        case diopi_dtype_bfloat16: *kind = {CUDA_R_16BF, CUBLAS_COMPUTE_32F}; return true;
        case diopi_dtype_float32: *kind = {CUDA_R_32F, CUBLAS_COMPUTE_32F}; return true;
        case diopi_dtype_float64: *kind = {CUDA_R_64F, CUBLAS_COMPUTE_64F}; return true;
        default: return false;
    }
}

}  // namespace diopi::launch

#endif  // DIOPI_CUDA_GEMM_KIND_H_
