// The launcher for NVIDIA GPUs: a thread or a team for each index, on the caller's stream.
#pragma once

#include <cuda_runtime.h>
#include <diopi/diopirt.h>

#include <cstdint>

#include "core/error.h"
#include "simt_team.h"

namespace diopi::launch {

constexpr bool kSynchronous = false;
constexpr bool kGemmTakesHalves = true;

inline void* device_address(const void* pointer) { return const_cast<void*>(pointer); }

namespace detail {

constexpr int64_t kThreads = 256;           // of a block
constexpr int64_t kMostBlocks = INT32_MAX;  // of a launch

// One index for each thread: a loop over several would cost a small tensor a tenth of its time.
template <class F>
__global__ void by_threads(int64_t n, const __grid_constant__ F f) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

template <class F>
__global__ void __launch_bounds__(kLargestTeam) by_teams(int64_t n, const __grid_constant__ F f) {
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (i < n) f(i, Team{});
}

template <class F>
__global__ void one_thread(F f) {
    f();
}

inline diopiError_t status(cudaError_t error) {
    if (error == cudaSuccess) return diopiSuccess;
    kernels::launch_reason = cudaGetErrorString(error);
    return diopiErrorOccurred;
}

// A kernel over [0, n), `per` of them for a block, by its address: with <<<>>> this code, and copies of `f`, would be
// in each caller.
inline diopiError_t start(diopiStreamHandle_t on, const void* code, dim3 block, int64_t per, int64_t n, const void* f) {
    const int64_t blocks = (n + per - 1) / per;
    if (blocks > kMostBlocks) return status(cudaErrorInvalidConfiguration);
    void* arguments[] = {&n, const_cast<void*>(f)};
    cudaLaunchKernel(code, static_cast<unsigned>(blocks), block, arguments, 0, static_cast<cudaStream_t>(on));
    return status(cudaGetLastError());
}

}  // namespace detail

template <class F>
diopiError_t parallel_for(diopiStreamHandle_t stream, int64_t n, const F& f) {
    if (n <= 0) return diopiSuccess;
    const auto kernel = reinterpret_cast<const void*>(detail::by_threads<F>);
    return detail::start(stream, kernel, detail::kThreads, detail::kThreads, n, &f);
}

// Calls f(i, team) for each i in [0, n); `work` is how many threads one index could keep busy.
template <class F>
diopiError_t parallel_teams(diopiStreamHandle_t stream, int64_t n, int64_t work, const F& f) {
    if (n <= 0) return diopiSuccess;
    const int64_t size = team_size(n, work);
    const int64_t teams = Team::fills_block(size) ? 1 : detail::kThreads / size;
    const auto kernel = reinterpret_cast<const void*>(detail::by_teams<F>);
    return detail::start(stream, kernel, dim3(static_cast<unsigned>(size), static_cast<unsigned>(teams)), teams, n, &f);
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
