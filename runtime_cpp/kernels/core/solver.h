// The factorizations and triangular systems of launch/library_solver.h: the vendor's where it has any, else loops.
#ifndef DIOPI_KERNELS_CORE_SOLVER_H_
#define DIOPI_KERNELS_CORE_SOLVER_H_

#include "launch/library_solver.h"

namespace diopi::kernels {

using launch::Triangle;
using launch::Workspace;

void potrf(diopiStreamHandle_t stream, int64_t n, double* a, int32_t* info, int64_t batch, const Workspace& workspace);
void trsm(diopiStreamHandle_t stream, const Triangle& triangle, int64_t m, int64_t n, const double* a, double* b,
          int64_t batch, const Workspace& workspace);
void geqrf(diopiStreamHandle_t stream, int64_t m, int64_t n, double* a, double* tau, int64_t batch,
           const Workspace& workspace);
void orgqr(diopiStreamHandle_t stream, int64_t m, int64_t n, int64_t k, double* a, const double* tau, int64_t batch,
           const Workspace& workspace);

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_SOLVER_H_
