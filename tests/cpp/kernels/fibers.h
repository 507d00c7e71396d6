// Threads of a host that take turns, each until it meets the others.
#pragma once

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace diopi::launch::detail {

template <int most>
class Fibers {
public:
    static constexpr int kMost = most;

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

}  // namespace diopi::launch::detail
