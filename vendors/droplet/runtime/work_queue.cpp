// Runs the work of an asynchronous stream in order.
#include "work_queue.h"

#include <cstring>

#include "device.h"

namespace droplet {

WorkQueue::WorkQueue(Device& device) : device_(device), worker_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    posted_changed_.notify_one();
    worker_.join();
}

void WorkQueue::post(Work work, tangKernel_t kernel, const void* args, size_t bytes) {
    std::unique_ptr<unsigned char[]> large_args;
    if (bytes > kInlineBytes) {
        large_args.reset(new unsigned char[bytes]);
        std::memcpy(large_args.get(), args, bytes);
    }
    {
        std::unique_lock<std::mutex> lock(mutex_);
        finished_changed_.wait(lock, [this] { return posted_ - finished_ < kSlots; });
        Slot& slot = slots_[posted_ % kSlots];
        if (!large_args && bytes > 0) std::memcpy(slot.args.data(), args, bytes);
        slot.large_args = std::move(large_args);
        slot.kernel = kernel;
        slot.work = work;
        ++posted_;
    }
    posted_changed_.notify_one();
}

void WorkQueue::run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        posted_changed_.wait(lock, [this] { return posted_ != finished_ || stopping_; });
        if (posted_ == finished_) return;
        Slot& slot = slots_[finished_ % kSlots];  // no producer writes it before finished_ moves on
        lock.unlock();
        device_.execute(slot.work, slot.kernel, slot.large_args ? slot.large_args.get() : slot.args.data());
        slot.large_args.reset();
        lock.lock();
        ++finished_;
        finished_changed_.notify_all();
    }
}

void WorkQueue::synchronize() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t target = posted_;
    finished_changed_.wait(lock, [this, target] { return finished_ >= target; });
}

bool WorkQueue::idle() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return posted_ == finished_;
}

}  // namespace droplet
