// launch_runs(stream, rows, columns, body): the loops of a fused elementwise kernel.
//
// body(row, begin, end) computes the elements [begin, end) of a row. A host takes whole stretches, so that the compiler
// makes vector code of the loop inside; a device takes a few neighbours in each thread.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/dtype.h"
#include "core/host_device.h"
#include "core/launcher.h"
#include "core/team.h"
#include "math/math.h"
#include "space/packed.h"

// Before a loop over elements that do not depend on each other.
#if defined(__CUDACC__)
#define DIOPI_INDEPENDENT _Pragma("unroll")
#else
#define DIOPI_INDEPENDENT DIOPI_VECTOR_LOOP
#endif

namespace diopi::compiled {

#if defined(DIOPI_LAUNCHER_HAS_TEAMS)
constexpr int64_t kStretch = 1;  // elements of one thread: neighbouring threads read neighbouring elements
#else
constexpr int64_t kStretch = 4096;
#endif

// A task takes `stretch` columns of one row, or `rows_each` rows that are shorter than that.
template <class Body>
struct Stretches {
    Body body;
    int64_t rows, columns;
    int64_t stretch, per_row;  // columns of a task, tasks of a row
    int64_t rows_each;

    DIOPI_HD void operator()(int64_t task) const {
        if (per_row == 1) {
            const int64_t first = task * rows_each;
            const int64_t last = first + rows_each < rows ? first + rows_each : rows;
            for (int64_t row = first; row < last; ++row) body(row, 0, columns);
            return;
        }
        const int64_t row = task / per_row;
        const int64_t begin = (task - row * per_row) * stretch;
        const int64_t end = begin + stretch < columns ? begin + stretch : columns;
        body(row, begin, end);
    }
};

#if defined(DIOPI_LAUNCHER_HAS_TEAMS)

// A task takes kWidth neighbours of a row.
template <class Body>
struct Packs {
    Body body;
    int64_t rows, per_row;

    DIOPI_HD void operator()(int64_t task) const {
        const int64_t row = rows == 1 ? 0 : task / per_row;
        body.pack(row, (task - row * per_row) * Body::kWidth);
    }
};

// True when packs of T at `pointer` are one access each.
template <class T, int width>
bool packed(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % kernels::kAccessBytes<T, width> == 0;
}

#endif

template <class Body>
diopiError_t launch_runs(diopiStreamHandle_t stream, int64_t rows, int64_t columns, const Body& body) {
    if (rows <= 0 || columns <= 0) return diopiSuccess;
#if defined(DIOPI_LAUNCHER_HAS_TEAMS)
    if constexpr (Body::kWidth > 1) {
        if (body.packs()) {
            const int64_t per_row = columns / Body::kWidth;
            return launch::parallel_for(stream, rows * per_row, Packs<Body>{body, rows, per_row});
        }
    }
#endif
    Stretches<Body> work{body, rows, columns, kStretch, (columns + kStretch - 1) / kStretch, 1};
    int64_t tasks = rows * work.per_row;
    if (work.per_row == 1) {
        work.rows_each = columns < kStretch ? kStretch / columns : 1;
        tasks = (rows + work.rows_each - 1) / work.rows_each;
    }
    return launch::parallel_for(stream, tasks, work);
}

// What an element of type T is computed in.
template <class C, class T>
DIOPI_HD inline C load(T value) {
    return kernels::cast<C>(value);
}

// A value of the width that it would have in memory: an operator of the program asked for that dtype.
template <class T, class C>
DIOPI_HD inline kernels::ComputeType<T> rounded(C value) {
    return kernels::cast<kernels::ComputeType<T>>(kernels::cast<T>(value));
}

}  // namespace diopi::compiled
