// The processors of the chip: threads that share the indices of a loop with the thread that runs it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <mutex>

#include "tang_runtime.h"

namespace droplet {

class ThreadPool {
public:
    // `threads` counts the caller of run(): one has it do everything itself. No thread is started before it is needed.
    // With `share_all` a second thread takes part in every loop of two indices or more.
    ThreadPool(int32_t threads, bool share_all) : threads_(threads), share_all_(share_all) {}
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // Calls range(args, begin, end) for ranges that together are [0, n) and returns when all have returned. Any number of
    // threads may call at once, also from within a range. Throws what the range of the lowest indices threw. An index takes
    // about so many nanoseconds, or nobody knows: 0.
    void run(int64_t n, int64_t nanoseconds, tangRange_t range, const void* args);

private:
    struct Loop;

    void probe(int64_t n, tangRange_t range, const void* args);
    void share(Loop&& loop);
    void start_workers();
    [[noreturn]] void serve();
    Loop* open_loop();

    const int32_t threads_;
    const bool share_all_;
    std::mutex mutex_;
    std::condition_variable opened_;
    std::list<Loop*> loops_;                // that want helpers
    std::atomic<int64_t> opened_loops_{0};  // as often as one was added to them
    int32_t workers_ = 0;
};

}  // namespace droplet
