// Threads for what may block: the wait for one send or receive, and the callbacks of a future, which may wait themselves.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dipu::distributed {

class Waiters : public std::enable_shared_from_this<Waiters> {
public:
    using Wait = std::function<void()>;  // throws nothing

    // Runs `wait` in a thread that is free, or in a new one; after stop(), in the calling thread.
    void add(Wait wait);

    // Returns when all waits have, but for one that calls this. To be called before the last reference goes.
    void stop();

private:
    void run();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Wait> waits_;
    std::size_t free_ = 0;  // threads without a wait
    bool stopped_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace dipu::distributed
