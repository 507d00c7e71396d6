// Submission of work to a stream.
#include "stream.h"

#include "device.h"

void tangStream_st::submit(droplet::Work work, tangKernel_t kernel, const void* args, size_t bytes) {
    if (async_) {
        queue(true)->post(work, kernel, args, bytes);
    } else {
        device_.execute(work, kernel, args);
    }
}

void tangStream_st::synchronize() {
    if (droplet::WorkQueue* work = queue(false)) work->synchronize();
}

bool tangStream_st::idle() {
    const droplet::WorkQueue* work = queue(false);
    return work == nullptr || work->idle();
}

droplet::WorkQueue* tangStream_st::queue(bool start) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!queue_ && start) queue_ = std::make_unique<droplet::WorkQueue>(device_);
    return queue_.get();
}
