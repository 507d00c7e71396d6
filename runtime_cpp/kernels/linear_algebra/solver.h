// The factorizations and triangular systems of launch/library_solver.h: the vendor's where it has any, else loops.
#pragma once

#include "core/launcher.h"  // first: it says whether the vendor has a solver
#include "launch/library_solver.h"

namespace diopi::kernels {

using launch::Triangle;
using launch::Workspace;

// Each takes what the launcher's of that name takes.
decltype(launch::potrf) potrf;
decltype(launch::trsm) trsm;
decltype(launch::geqrf) geqrf;
decltype(launch::orgqr) orgqr;

}  // namespace diopi::kernels
