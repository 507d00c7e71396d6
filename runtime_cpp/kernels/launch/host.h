// The launcher of a "device" that is the calling thread: plain loops, for tests of the kernels without a chip.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <cstring>

namespace diopi::launch {

// True where launched code runs before the launch returns, so that an error flag can be read for free.
constexpr bool kSynchronous = true;
constexpr bool kGemmTakesHalves = false;

// The address that device code uses for a tensor's data pointer.
inline void* device_address(const void* pointer) { return const_cast<void*>(pointer); }

template <class F>
diopiError_t parallel_for(diopiStreamHandle_t, int64_t n, F f) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return diopiSuccess;
}

// Waits for the stream, then copies; `source` is a device address.
inline diopiError_t copy_to_host(diopiStreamHandle_t, void* destination, const void* source, int64_t bytes) {
    memcpy(destination, source, static_cast<size_t>(bytes));
    return diopiSuccess;
}

namespace detail {

template <class T>
void gemm_loops(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p) {
                sum += static_cast<double>(trans_a ? a[p * lda + i] : a[i * lda + p]) *
                       static_cast<double>(trans_b ? b[j * ldb + p] : b[p * ldb + j]);
            }
            // beta of zero means that c is not read: it may hold NaN
            c[i * ldc + j] = static_cast<T>(alpha * sum + (beta == T(0) ? T(0) : beta * c[i * ldc + j]));
        }
    }
}

}  // namespace detail

// c = alpha * op(a) op(b) + beta * c for each of `batch` row-major matrices; float32 and float64.
inline diopiError_t gemm(diopiStreamHandle_t, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                         int64_t k, double alpha, const void* a, int64_t lda, const void* b, int64_t ldb, double beta,
                         void* c, int64_t ldc, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c) {
    if (dtype != diopi_dtype_float32 && dtype != diopi_dtype_float64) return diopiDtypeNotSupported;
    for (int64_t i = 0; i < batch; ++i) {
        if (dtype == diopi_dtype_float32) {
            detail::gemm_loops<float>(trans_a, trans_b, m, n, k, static_cast<float>(alpha),
                                      static_cast<const float*>(a) + i * stride_a, lda,
                                      static_cast<const float*>(b) + i * stride_b, ldb, static_cast<float>(beta),
                                      static_cast<float*>(c) + i * stride_c, ldc);
        } else {
            detail::gemm_loops<double>(trans_a, trans_b, m, n, k, alpha, static_cast<const double*>(a) + i * stride_a,
                                       lda, static_cast<const double*>(b) + i * stride_b, ldb, beta,
                                       static_cast<double*>(c) + i * stride_c, ldc);
        }
    }
    return diopiSuccess;
}

}  // namespace diopi::launch
