// The launcher for NVIDIA GPUs: grid-stride kernels on the caller's stream.
#ifndef DIOPI_KERNELS_LAUNCH_CUDA_H_
#define DIOPI_KERNELS_LAUNCH_CUDA_H_

#include <cuda_runtime.h>
#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::launch {

constexpr bool kSynchronous = false;

inline void* device_address(const void* pointer) { return const_cast<void*>(pointer); }

namespace detail {

template <class F>
__global__ void grid_stride(int64_t n, F f) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

template <class F>
__global__ void one_thread(F f) {
    f();
}

inline diopiError_t status(cudaError_t error) { return error == cudaSuccess ? diopiSuccess : diopiErrorOccurred; }

}  // namespace detail

template <class F>
diopiError_t parallel_for(diopiStreamHandle_t stream, int64_t n, F f) {
    if (n <= 0) return diopiSuccess;
    constexpr int64_t threads = 256;
    constexpr int64_t most_blocks = 1 << 16;  // enough to fill any chip; the grid stride covers the rest
    const int64_t blocks = (n + threads - 1) / threads;
    const auto grid = static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
    detail::grid_stride<<<grid, static_cast<unsigned>(threads), 0, static_cast<cudaStream_t>(stream)>>>(n, f);
    return detail::status(cudaGetLastError());
}

template <class F>
diopiError_t single_task(diopiStreamHandle_t stream, F f) {
    detail::one_thread<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(f);
    return detail::status(cudaGetLastError());
}

inline diopiError_t copy_to_host(diopiStreamHandle_t stream, void* destination, const void* source, int64_t bytes) {
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    const cudaError_t copied =
        cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, cuda_stream);
    return detail::status(copied == cudaSuccess ? cudaStreamSynchronize(cuda_stream) : copied);
}

// Row-major; the vendor defines it over its matrix library.
diopiError_t gemm(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                  int64_t k, double alpha, const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c,
                  int64_t ldc, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c);

}  // namespace diopi::launch

#endif  // DIOPI_KERNELS_LAUNCH_CUDA_H_
