// Droplet's factorizations, by the LAPACK of OpenBLAS. LAPACKE's functions without _work refuse NaN.
#include <lapacke.h>

#include <algorithm>
#include <vector>

#include "launch/library_solver.h"
#include "launcher.h"
#include "openblas.h"

namespace diopi::launch {
namespace {

constexpr blasint kBlock = 32;             // columns that LAPACK's blocked code takes at once
constexpr int64_t kMostRightSides = 256;  // of one call: others may fall to other threads

// Calls f(i) on the device for each of `count` matrices.
template <class F>
void for_each_matrix(diopiStreamHandle_t stream, int64_t count, const F& f) {
    openblas();
    kernels::check(parallel_for(stream, count, f), "matrices could not be factored on the device");
}

}  // namespace

// Of fewer rows the loops factor faster, and solve faster for one or two right sides; many sides are faster by LAPACK.
bool solves(int64_t rows, int64_t) { return rows > 16; }

void potrf(diopiStreamHandle_t stream, int64_t n, double* a, int32_t* info, int64_t batch, const Workspace&) {
    for_each_matrix(stream, batch, [=, order = extent(n)](int64_t i) {
        info[i] = OPENBLAS(scipy_LAPACKE_dpotrf_work)(LAPACK_COL_MAJOR, 'L', order, a + i * n * n, order);
    });
}

// How OpenBLAS adds up depends on the shape it is given, so the pieces depend on the system alone.
void trsm(diopiStreamHandle_t stream, const Triangle& triangle, int64_t m, int64_t n, const double* a, double* b,
          int64_t batch, const Workspace&) {
    const int64_t order = triangle.left ? m : n, sides = triangle.left ? n : m;
    const int64_t pieces = (sides + kMostRightSides - 1) / kMostRightSides;
    const blasint lda = extent(order), ldb = extent(m);
    for_each_matrix(stream, batch * pieces, [=](int64_t i) {
        const int64_t matrix = i / pieces, first = (i - matrix * pieces) * kMostRightSides;
        const auto count = static_cast<blasint>(std::min(kMostRightSides, sides - first));
        OPENBLAS(scipy_cblas_dtrsm)(
            CblasColMajor, triangle.left ? CblasLeft : CblasRight, triangle.upper ? CblasUpper : CblasLower,
            triangle.is_transposed ? CblasTrans : CblasNoTrans, triangle.unit ? CblasUnit : CblasNonUnit,
            triangle.left ? lda : count, triangle.left ? count : lda, 1, a + matrix * order * order, lda,
            b + matrix * m * n + first * (triangle.left ? m : 1), ldb);
    });
}

void geqrf(diopiStreamHandle_t stream, int64_t m, int64_t n, double* a, double* tau, int64_t batch, const Workspace&) {
    for_each_matrix(stream, batch, [=, rows = extent(m), columns = extent(n)](int64_t i) {
        std::vector<double> work(static_cast<size_t>(n * kBlock));
        OPENBLAS(scipy_LAPACKE_dgeqrf_work)(LAPACK_COL_MAJOR, rows, columns, a + i * m * n, rows,
                                            tau + i * std::min(m, n), work.data(), columns * kBlock);
    });
}

void orgqr(diopiStreamHandle_t stream, int64_t m, int64_t n, int64_t k, double* a, const double* tau, int64_t batch,
           const Workspace&) {
    for_each_matrix(stream, batch, [=, rows = extent(m), columns = extent(n), count = extent(k)](int64_t i) {
        std::vector<double> work(static_cast<size_t>(n * kBlock));
        OPENBLAS(scipy_LAPACKE_dorgqr_work)(LAPACK_COL_MAJOR, rows, columns, count, a + i * m * n, rows, tau + i * k,
                                            work.data(), columns * kBlock);
    });
}

}  // namespace diopi::launch
