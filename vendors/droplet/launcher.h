// What the portable kernels are compiled against on droplet: loops and matrix products that run on the chip.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <type_traits>

#include "runtime/tang_runtime.h"

#define DIOPI_LAUNCHER_HAS_RECORDS
#define DIOPI_LAUNCHER_HAS_SOLVER

namespace diopi::launch {

// copy_to_host() is cheap here, so kernels may look at error flags of the device. In the asynchronous mode launched code
// may still run when the launch returns: a flag is read through copy_to_host().
constexpr bool kSynchronous = true;

// OpenBLAS multiplies float32 and float64.
constexpr bool kGemmTakesHalves = false;

// The address that device code uses for a tensor's data pointer; host memory, null and translated addresses stay as they are.
inline void* device_address(const void* pointer) { return tangDeviceAddress(pointer); }

namespace detail {

inline tangStream_t stream_of(diopiStreamHandle_t stream) { return static_cast<tangStream_t>(stream); }

// The chip keeps the words of a failure; diopiGetLastErrorString() gives them.
inline diopiError_t status_of(tangError_t error) { return error == tangSuccess ? diopiSuccess : diopiErrorOccurred; }

template <class F>
struct Loop {
    int64_t n;
    F body;

    static void run(const void* args) { tangForRanges(static_cast<const Loop*>(args)->n, 0, &range, args); }

    static void range(const void* args, int64_t begin, int64_t end) {
        const F body = static_cast<const Loop*>(args)->body;  // a local copy: stores of the body cannot change it
        for (int64_t i = begin; i < end; ++i) body(i);
    }
};

template <class Work>
diopiError_t launch(diopiStreamHandle_t stream, const Work& work) {
    static_assert(std::is_trivially_copyable_v<Work>, "what is launched travels by value to the device");
    static_assert(alignof(Work) <= 16, "the heap aligns large argument blocks no further");
    return status_of(tangLaunch(stream_of(stream), &Work::run, &work, sizeof work));
}

}  // namespace detail

// Calls f(i) on the device for each i in [0, n), on several threads where DROPLET_THREADS says so and the work pays.
template <class F>
diopiError_t parallel_for(diopiStreamHandle_t stream, int64_t n, F f) {
    if (n <= 0) return diopiSuccess;
    return detail::launch(stream, detail::Loop<F>{n, f});
}

// Whether what is launched is recorded, and so cannot be waited for.
inline bool is_recorded(diopiStreamHandle_t stream) {
    bool yes = false;
    return tangStreamIsCapturing(detail::stream_of(stream), &yes) == tangSuccess && yes;
}

// Waits for the stream's work, then copies; `source` is a device pointer or a translated address.
inline diopiError_t copy_to_host(diopiStreamHandle_t stream, void* destination, const void* source, int64_t bytes) {
    const tangError_t copied = tangMemcpyAsync(destination, tangDevicePointer(source), static_cast<size_t>(bytes),
                                               tangMemcpyDeviceToHost, detail::stream_of(stream));
    if (copied != tangSuccess) return detail::status_of(copied);
    return detail::status_of(tangStreamSynchronize(detail::stream_of(stream)));
}

// c = alpha op(a) op(b) + beta c for each of `batch` row-major matrices: op(a) is m x k, op(b) is k x n. float32 and
// float64. The pointers are device pointers or translated addresses; with beta 0 c is not read.
diopiError_t gemm(diopiStreamHandle_t stream, diopiDtype_t dtype, bool trans_a, bool trans_b, int64_t m, int64_t n,
                  int64_t k, double alpha, const void* a, int64_t lda, const void* b, int64_t ldb, double beta, void* c,
                  int64_t ldc, int64_t batch, int64_t stride_a, int64_t stride_b, int64_t stride_c);

}  // namespace diopi::launch
