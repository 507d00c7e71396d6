// A pool of threads that grows with the number of simultaneous waits.
#include "waiters.h"

#include <utility>

namespace dipu::distributed {

void Waiters::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        if (thread.get_id() == std::this_thread::get_id()) {
            thread.detach();
        } else {
            thread.join();
        }
    }
    threads_.clear();
}

void Waiters::add(Wait wait) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!stopped_) {
            waits_.push_back(std::move(wait));
            if (waits_.size() > free_) {
                threads_.emplace_back([self = shared_from_this()] { self->run(); });
                ++free_;
            }
            changed_.notify_one();
            return;
        }
    }
    wait();
}

void Waiters::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stopped_ || !waits_.empty(); });
        if (waits_.empty()) {
            return;
        }
        Wait wait = std::move(waits_.front());
        waits_.pop_front();
        --free_;
        lock.unlock();
        wait();
        wait = nullptr;
        lock.lock();
        ++free_;
    }
}

}  // namespace dipu::distributed
