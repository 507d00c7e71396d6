// Matrix products by cuBLAS. Row-major matrices are column-major ones transposed: c' = op(b)' op(a)'.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>

#include "library_handles.h"
#include "core/error.h"
#include "core/launcher.h"
#include "gemm_kind.h"

namespace diopi::launch {
namespace {

// cuBLAS wants a leading dimension even for a matrix of one row, where it means nothing.
int leading_dimension(int64_t rows, int64_t columns, int64_t given) {
    const int64_t least = std::max<int64_t>(columns, 1);
    if (rows <= 1) return extent(std::max(given, least));
    kernels::require(given >= least, "a matrix with %lld columns has its rows only %lld elements apart",
                     static_cast<long long>(columns), static_cast<long long>(given));
    return extent(given);
}

}  // namespace

cublasHandle_t cublas_on(cudaStream_t stream) {
    thread_local ByDevice<LibraryHandle<cublasHandle_t, kCublas, cublasCreate, cublasDestroy>> handles;
    const cublasHandle_t handle = handles.current().get();
    const int exact = CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    check_cublas(cublasSetMathMode(handle, static_cast<cublasMath_t>(exact)), "cuBLAS did not take its math mode");
    check_cublas(cublasSetStream(handle, stream), "cuBLAS did not take the stream");
    return handle;
}

diopiError_t gemm(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                  int64_t k, double alpha, const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c,
                  int64_t ldc, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
    GemmKind kind{};
    if (!gemm_kind(dtype, &kind)) return diopiDtypeNotSupported;
    if (m == 0 || n == 0 || batch == 0) return diopiSuccess;
    return kernels::guarded([&] {
        const cublasHandle_t handle = cublas_on(static_cast<cudaStream_t>(stream));
        const bool wide = dtype == diopi_dtype_float64;
        const float scales[2] = {static_cast<float>(alpha), static_cast<float>(beta)};
        const void* factor = wide ? static_cast<const void*>(&alpha) : &scales[0];
        const void* kept = wide ? static_cast<const void*>(&beta) : &scales[1];
        const int row_a = trans_a ? leading_dimension(k, m, lda) : leading_dimension(m, k, lda);
        const int row_b = trans_b ? leading_dimension(n, k, ldb) : leading_dimension(k, n, ldb);
        const cublasOperation_t left = trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, right = trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
        const int columns = extent(n), rows = extent(m), depth = extent(k), row_c = leading_dimension(m, n, ldc);
        if (batch == 1) {  // cuBLAS has more kernels for it
            return check_cublas(
                cublasGemmEx(handle, left, right, columns, rows, depth, factor, b, kind.data, row_b, a, kind.data,
                             row_a, kept, c, kind.data, row_c, kind.compute, CUBLAS_GEMM_DEFAULT),
                "a matrix product failed");
        }
        check_cublas(cublasGemmStridedBatchedEx(handle, left, right, columns, rows, depth, factor, b, kind.data, row_b,
                                                stride_b, a, kind.data, row_a, stride_a, kept, c, kind.data, row_c,
                                                stride_c, extent(batch), kind.compute, CUBLAS_GEMM_DEFAULT),
                     "matrix products failed");
    });
}

}  // namespace diopi::launch
