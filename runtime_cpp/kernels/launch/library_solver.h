// Factorizations and triangular systems in double, as BLAS and LAPACK have them: column by column, without gaps, the
// matrices of a batch one after another; none of them is empty. Failures are those of core/error.h. Launchers with a
// vendor's library define DIOPI_LAUNCHER_HAS_SOLVER and these functions; kernels call those of linear_algebra/solver.h.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "library_product.h"

namespace diopi::launch {

#if defined(DIOPI_LAUNCHER_HAS_SOLVER)
constexpr bool kHasSolver = true;
#else
constexpr bool kHasSolver = false;
#endif

// False where a batch of matrices of so many rows is for the loops.
bool solves(int64_t rows, int64_t batch);

struct Triangle {
    bool left;  // it stands left of the unknown
    bool upper;
    bool is_transposed;
    bool unit;  // its diagonal counts as ones
};

// The lower triangle of each a, n x n, becomes its Cholesky factor; info tells the order of the first minor that is not
// positive, else zero. What stands above is never read.
void potrf(diopiStreamHandle_t stream, int64_t n, double* a, int32_t* info, int64_t batch, const Workspace& workspace);

// Each b, m x n, becomes the x of op(a) x = b, or of x op(a) = b.
void trsm(diopiStreamHandle_t stream, const Triangle& triangle, int64_t m, int64_t n, const double* a, double* b,
          int64_t batch, const Workspace& workspace);

// Each a, m x n, becomes R, and below it Householder's reflections, min(m, n), with their factors in tau.
void geqrf(diopiStreamHandle_t stream, int64_t m, int64_t n, double* a, double* tau, int64_t batch,
           const Workspace& workspace);

// Each a, m x n, whose first k columns hold reflections, becomes the first columns of their product; k <= n <= m.
void orgqr(diopiStreamHandle_t stream, int64_t m, int64_t n, int64_t k, double* a, const double* tau, int64_t batch,
           const Workspace& workspace);

}  // namespace diopi::launch
