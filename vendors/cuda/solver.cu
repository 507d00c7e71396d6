// Factorizations by cuSOLVER, triangular systems by cuBLAS: many small matrices at once, large ones each for itself.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <algorithm>

#include "launch/library_solver.h"
#include "library_handles.h"
#include "core/error.h"
#include "core/host_device.h"
#include "core/launcher.h"
#include "gemm_kind.h"

namespace diopi::launch {
namespace {

// Matrices of `rows` that do not fill the device one by one.
bool many_small(int64_t rows, int64_t batch) { return batch > 1 && rows <= 256 && batch >= rows / 16; }

void check_solver(cusolverStatus_t status, const char* what) {
    kernels::require(status == CUSOLVER_STATUS_SUCCESS, "%s: cuSOLVER gives status %d", what, static_cast<int>(status));
}

cusolverDnHandle_t cusolver_on(diopiStreamHandle_t stream) {
    thread_local ByDevice<LibraryHandle<cusolverDnHandle_t, kCusolver, cusolverDnCreate, cusolverDnDestroy>> solvers;
    const cusolverDnHandle_t handle = solvers.current().get();
    check_solver(cusolverDnSetStream(handle, static_cast<cudaStream_t>(stream)), "cuSOLVER did not take the stream");
    return handle;
}

template <class T>
T* room_for(const Workspace& workspace, int64_t count) {
    return static_cast<T*>(workspace(count * static_cast<int64_t>(sizeof(T))));
}

template <class T>
struct WriteAddresses {
    T** addresses;
    T* first;
    int64_t step;

    DIOPI_HD void operator()(int64_t i) const { addresses[i] = first + i * step; }
};

// The addresses of the matrices of a batch, as functions for several take them.
template <class T>
T** addresses_of(diopiStreamHandle_t stream, T* first, int64_t step, int64_t batch, const Workspace& workspace) {
    T** const addresses = room_for<T*>(workspace, batch);
    kernels::check(parallel_for(stream, batch, WriteAddresses<T>{addresses, first, step}),
                   "a kernel could not be launched");
    return addresses;
}

}  // namespace

// A thread for each of many small matrices is done before the library has launched what it launches for each.
bool solves(int64_t rows, int64_t batch) { return rows * rows * rows >= 4096 * batch; }

void potrf(diopiStreamHandle_t stream, int64_t n, double* a, int32_t* info, int64_t batch, const Workspace& workspace) {
    const cusolverDnHandle_t handle = cusolver_on(stream);
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    const int order = extent(n);
    if (many_small(n, batch)) {
        double** const each = addresses_of(stream, a, n * n, batch, workspace);
        return check_solver(cusolverDnDpotrfBatched(handle, lower, order, each, order, info, extent(batch)),
                            "Cholesky factorizations failed");
    }
    int length = 0;
    check_solver(cusolverDnDpotrf_bufferSize(handle, lower, order, a, order, &length), "potrf gives no size");
    double* const room = room_for<double>(workspace, length);
    for (int64_t i = 0; i < batch; ++i) {
        check_solver(cusolverDnDpotrf(handle, lower, order, a + i * n * n, order, room, length, info + i),
                     "a Cholesky factorization failed");
    }
}

void trsm(diopiStreamHandle_t stream, const Triangle& triangle, int64_t m, int64_t n, const double* a, double* b,
          int64_t batch, const Workspace& workspace) {
    const cublasHandle_t handle = cublas_on(static_cast<cudaStream_t>(stream));
    const cublasSideMode_t side = triangle.left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const cublasFillMode_t part = triangle.upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    const cublasOperation_t operation = triangle.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasDiagType_t diagonal = triangle.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const int64_t order = triangle.left ? m : n;
    const int rows = extent(m), columns = extent(n), lda = extent(order);
    const double one = 1;
    if (many_small(order, batch)) {
        const double** const triangles = addresses_of(stream, a, order * order, batch, workspace);
        double** const sides = addresses_of(stream, b, m * n, batch, workspace);
        return check_cublas(cublasDtrsmBatched(handle, side, part, operation, diagonal, rows, columns, &one, triangles,
                                               lda, sides, rows, extent(batch)),
                            "triangular systems could not be solved");
    }
    for (int64_t i = 0; i < batch; ++i) {
        check_cublas(cublasDtrsm(handle, side, part, operation, diagonal, rows, columns, &one, a + i * order * order,
                                 lda, b + i * m * n, rows),
                     "a triangular system could not be solved");
    }
}

void geqrf(diopiStreamHandle_t stream, int64_t m, int64_t n, double* a, double* tau, int64_t batch,
           const Workspace& workspace) {
    const int rows = extent(m), columns = extent(n);
    const int64_t count = std::min(m, n);
    if (many_small(m, batch)) {
        double** const each = addresses_of(stream, a, m * n, batch, workspace);
        double** const factors = addresses_of(stream, tau, count, batch, workspace);
        int info = 0;
        check_cublas(cublasDgeqrfBatched(cublas_on(static_cast<cudaStream_t>(stream)), rows, columns, each, rows,
                                         factors, &info, extent(batch)),
                     "QR factorizations failed");
        return kernels::require(info == 0, "cuBLAS refuses argument %d of QR factorizations", -info);
    }
    const cusolverDnHandle_t handle = cusolver_on(stream);
    int length = 0;
    check_solver(cusolverDnDgeqrf_bufferSize(handle, rows, columns, a, rows, &length), "geqrf gives no size");
    double* const room = room_for<double>(workspace, length);
    int* const info = room_for<int>(workspace, 1);
    for (int64_t i = 0; i < batch; ++i) {
        double* const one = a + i * m * n;
        check_solver(cusolverDnDgeqrf(handle, rows, columns, one, rows, tau + i * count, room, length, info),
                     "a QR factorization failed");
    }
}

void orgqr(diopiStreamHandle_t stream, int64_t m, int64_t n, int64_t k, double* a, const double* tau, int64_t batch,
           const Workspace& workspace) {
    const cusolverDnHandle_t handle = cusolver_on(stream);
    const int rows = extent(m), columns = extent(n), count = extent(k);
    int length = 0;
    check_solver(cusolverDnDorgqr_bufferSize(handle, rows, columns, count, a, rows, tau, &length),
                 "orgqr gives no size");
    double* const room = room_for<double>(workspace, length);
    int* const info = room_for<int>(workspace, 1);
    for (int64_t i = 0; i < batch; ++i) {
        double* const one = a + i * m * n;
        check_solver(cusolverDnDorgqr(handle, rows, columns, count, one, rows, tau + i * k, room, length, info),
                     "a product of reflections failed");
    }
}

}  // namespace diopi::launch
