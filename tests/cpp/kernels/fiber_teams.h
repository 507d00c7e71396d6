// Teams on a host, for tests of code that teams run: the threads of a team take turns, each until it meets the others.
// A launcher's parallel_for comes before.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define DIOPI_LAUNCHER_HAS_TEAMS

namespace diopi::launch {

namespace detail {

class Fibers {
public:
    static constexpr int kMost = 8;

    // Runs body() once per rank. Ends the process where some threads wait for others that are done.
    void run(int count, const std::function<void()>& body) {
        size = count;
        body_ = &body;
        running() = this;
        for (int k = 0; k < size; ++k) {
            stacks_[k].resize(1 << 18);
            getcontext(&contexts_[k]);
            contexts_[k].uc_stack.ss_sp = stacks_[k].data();
            contexts_[k].uc_stack.ss_size = stacks_[k].size();
            contexts_[k].uc_link = &scheduler_;
            makecontext(&contexts_[k], &Fibers::enter, 0);
        }
        for (done_ = 0; done_ == 0;) {
            for (rank = 0; rank < size; ++rank) swapcontext(&scheduler_, &contexts_[rank]);
        }
        if (done_ == size) return;
        std::fprintf(stderr, "%d of %d threads of a team wait for the others\n", size - done_, size);
        std::abort();
    }

    void meet() { swapcontext(&contexts_[rank], &scheduler_); }

    int size = 0;
    int rank = 0;  // of the thread that runs
    std::vector<const void*> values = std::vector<const void*>(kMost);

    static Fibers*& running() {
        static thread_local Fibers* fibers;
        return fibers;
    }

private:
    static void enter() {
        (*running()->body_)();
        ++running()->done_;
    }

    ucontext_t scheduler_;
    ucontext_t contexts_[kMost];
    std::vector<char> stacks_[kMost];
    const std::function<void()>* body_ = nullptr;
    int done_ = 0;
};

}  // namespace detail

class Team {
public:
    static constexpr bool kAlone = false;

    // The thread that runs.
    Team() : fibers_(*detail::Fibers::running()), rank_(fibers_.rank) {}

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

    detail::Fibers& fibers_;
    int rank_;
};

// Often more threads than `work`, so that some have nothing to do.
template <class F>
diopiError_t parallel_teams(diopiStreamHandle_t stream, int64_t n, int64_t work, F f) {
    int size = 1;
    while (size < detail::Fibers::kMost && size < work) size *= 2;
    return parallel_for(stream, n, [=](int64_t i) {
        static thread_local detail::Fibers fibers;
        fibers.run(size, [&] { f(i, Team()); });
    });
}

}  // namespace diopi::launch
