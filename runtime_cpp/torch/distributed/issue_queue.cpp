// One thread and a queue of steps; a step that need not wait is run by its caller.
#include "issue_queue.h"

#include <utility>

namespace dipu::distributed {

void IssueQueue::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void IssueQueue::add(Step step, bool need_not_wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (need_not_wait && !running_ && steps_.empty()) {
        running_ = true;
        lock.unlock();
        step();
        lock.lock();
        running_ = false;
    } else {
        steps_.push_back(std::move(step));
        if (!thread_.joinable()) {
            thread_ = std::thread([this] { run(); });
        }
    }
    changed_.notify_all();
}

void IssueQueue::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return !running_ && (stopped_ || !steps_.empty()); });
        if (steps_.empty()) {
            return;
        }
        // Destroyed without the lock too: it holds tensors.
        Step step = std::move(steps_.front());
        steps_.pop_front();
        running_ = true;
        lock.unlock();
        step();
        step = nullptr;
        lock.lock();
        running_ = false;
    }
}

}  // namespace dipu::distributed
