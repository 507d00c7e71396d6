// Teams on a host, for tests of code that teams run: the threads of a team take turns, each until it meets the others.
// A launcher's parallel_for comes before.
#pragma once

#include "fibers.h"

#define DIOPI_LAUNCHER_HAS_TEAMS

namespace diopi::launch {

using TeamFibers = detail::Fibers<8>;

class Team {
public:
    static constexpr bool kAlone = false;

    // The thread that runs.
    Team() : fibers_(*TeamFibers::running()), rank_(fibers_.rank) {}

    int64_t rank() const { return rank_; }
    int64_t size() const { return fibers_.size; }

    template <class T, class Join>
    T reduce(const T& value, const Join& join) const {
        fibers_.values[rank_] = &value;
        fibers_.meet();
        const T result = joined<T>(0, fibers_.size, join);
        fibers_.meet();
        return result;
    }

    template <class T, class Join>
    T scan(const T& value, const T& none, const Join& join, T* all) const {
        fibers_.values[rank_] = &value;
        fibers_.meet();
        T before = none;
        *all = *static_cast<const T*>(fibers_.values[0]);
        for (int k = 1; k < fibers_.size; ++k) {
            if (k == rank_) before = *all;
            *all = join(*all, *static_cast<const T*>(fibers_.values[k]));
        }
        fibers_.meet();
        return before;
    }

private:
    // Of the values of each `step`-th thread from `first` on, in the order of a GPU's lanes.
    template <class T, class Join>
    T joined(int first, int count, const Join& join, int step = 1) const {
        if (count == 1) return *static_cast<const T*>(fibers_.values[first]);
        return join(joined<T>(first, count / 2, join, step * 2), joined<T>(first + step, count / 2, join, step * 2));
    }

    TeamFibers& fibers_;
    int rank_;
};

// Often more threads than `work`, so that some have nothing to do.
template <class F>
diopiError_t parallel_teams(diopiStreamHandle_t stream, int64_t n, int64_t work, F f) {
    int size = 1;
    while (size < TeamFibers::kMost && size < work) size *= 2;
    return parallel_for(stream, n, [=](int64_t i) {
        static thread_local TeamFibers fibers;
        fibers.run(size, [&] { f(i, Team()); });
    });
}

}  // namespace diopi::launch
