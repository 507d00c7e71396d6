// Teams: the threads that a launcher gives to one index of a loop. Where it gives none, a team is one thread.
#pragma once

#include <cstdint>

#include "device_code.h"
#include "launch/alone.h"
#include "space/strides.h"
#include "tensor.h"

namespace diopi::launch {

#if !defined(DIOPI_LAUNCHER_HAS_TEAMS)

using Team = Alone;

// Calls f(i), which is f(i, Team()), on the device for each i in [0, n); `work` is how many threads one index could
// keep busy.
template <class F>
diopiError_t parallel_teams(diopiStreamHandle_t stream, int64_t n, int64_t /*work*/, const F& f) {
    return parallel_for(stream, n, f);
}

#endif

}  // namespace diopi::launch

namespace diopi::kernels {

using launch::Alone;
using launch::Team;

// Runs task(i, team) on the device for each i in [0, count). A task has Team() as the default of its second argument:
// where a team is one thread, its loop is that of any other task.
template <class Task>
void for_each_by_teams(diopiContextHandle_t ctx, int64_t count, int64_t work, const Task& task) {
    check_launch(launch::parallel_teams(stream_of(ctx), count, work, task));
}

// The elements of an index may lie far apart, but beside those of the next one. Where so many lie side by side, threads
// read whole runs of memory if each has an index for itself, or if few share one as long as the indices are few.
constexpr int64_t kNeighbours = 32;
constexpr int64_t kScatteredWork = 7;

// For Team::reduce.
struct Plus {
    template <class T>
    DIOPI_HD T operator()(const T& a, const T& b) const {
        return a + b;
    }
};

// What falls to this thread of the elements [0, count), which its team shares.
DIOPI_HD inline WholeRun stripe_of(const Alone&, int64_t count) { return {count}; }

template <class SeveralThreads>
DIOPI_HD inline Stripe stripe_of(const SeveralThreads& team, int64_t count) {
    return {team.rank(), team.size(), count};
}

// Rows of equally many elements, shared by a team: the rows that a thread works on, and its elements of each.
template <class Elements>
struct RowStripes {
    Elements rows;
    Elements elements;
};

DIOPI_HD inline RowStripes<WholeRun> row_stripes(const Alone&, int64_t rows, int64_t count) {
    return {{rows}, {count}};
}

// As many threads work on one row as it has elements; a team has a power of two of them.
template <class SeveralThreads>
DIOPI_HD inline RowStripes<Stripe> row_stripes(const SeveralThreads& team, int64_t rows, int64_t count) {
    const int64_t rank = team.rank(), size = team.size();
    int shift = 0;
    while ((size >> shift) > 1 && (int64_t{1} << shift) < count) ++shift;
    const int64_t width = int64_t{1} << shift;
    return {{rank >> shift, size >> shift, rows}, {rank & (width - 1), width, count}};
}

}  // namespace diopi::kernels
