// The launcher for NVIDIA GPUs: a thread or a team for each index, on the caller's stream.
#pragma once

#include <cuda_runtime.h>
#include <diopi/diopirt.h>

#include <cstdint>

#include "core/error.h"
#include "launch/simt_team.h"
#if !defined(__CUDACC__)
#include "kernels_apart.h"
#endif

namespace diopi::launch {

constexpr bool kSynchronous = false;
constexpr bool kGemmTakesHalves = true;

inline void* device_address(const void* pointer) { return const_cast<void*>(pointer); }

namespace detail {

constexpr int64_t kThreads = 256;           // of a block
constexpr int64_t kMostBlocks = INT32_MAX;  // of a launch

#if defined(__CUDACC__)

// Whether all chips that this is compiled for can start a kernel while the one before it in its stream ends: between
// two kernels a microsecond goes by otherwise, which many of them do not last.
constexpr bool start_early() {
    for (const int chip : {__CUDA_ARCH_LIST__}) {
        if (chip < 900) return false;
    }
    return true;
}

// Where a kernel starts: it has its place on the chip, but what kernels before it write is not there yet.
__device__ inline void await_others() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// One index for each thread: a loop over several would cost a small tensor a tenth of its time.
template <class F>
__global__ void by_threads(int64_t n, const __grid_constant__ F f) {
    await_others();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) f(i);
}

template <class F>
__global__ void __launch_bounds__(kLargestTeam) by_teams(int64_t n, const __grid_constant__ F f) {
    await_others();
    const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    if (i < n) f(i, Team{});
}

struct DeviceCode {
    const void* kernel;
    bool starts_early = start_early();
    cudaError_t error = cudaSuccess;
};
inline DeviceCode device_code(const void* kernel) { return {kernel}; }

#endif

inline diopiError_t status(cudaError_t error) {
    if (error == cudaSuccess) return diopiSuccess;
    kernels::launch_reason = cudaGetErrorString(error);
    return diopiErrorOccurred;
}

// A kernel over [0, n), `per` of them for a block, by its address: with <<<>>> this code, and copies of `f`, would be
// in each caller.
inline diopiError_t start(diopiStreamHandle_t on, const void* kernel, dim3 block, int64_t per, int64_t n,
                          const void* f) {
    const int64_t blocks = (n + per - 1) / per;
    if (blocks > kMostBlocks) return status(cudaErrorInvalidConfiguration);
    const DeviceCode code = device_code(kernel);
    if (code.error != cudaSuccess) return status(code.error);
    void* arguments[] = {&n, const_cast<void*>(f)};
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t config{static_cast<unsigned>(blocks), block,  0,
                                    static_cast<cudaStream_t>(on), &early, code.starts_early ? 1u : 0u};
    cudaLaunchKernelExC(&config, code.kernel, arguments);
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
