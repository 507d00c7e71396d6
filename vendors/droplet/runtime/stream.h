// An in-order stream of work on one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tang_runtime.h"
#include "work_queue.h"

namespace droplet {
class Device;
}

struct tangStream_st {
public:
    tangStream_st(droplet::Device& device, int32_t priority, bool async)
        : device_(device), priority_(priority), async_(async) {}
    tangStream_st(const tangStream_st&) = delete;
    tangStream_st& operator=(const tangStream_st&) = delete;

    // Runs the work now, or queues it with a copy of the arguments.
    void submit(droplet::Work work, tangKernel_t kernel, const void* args, size_t bytes);
    void synchronize();
    bool idle();

    droplet::Device& device() const { return device_; }
    int32_t priority() const { return priority_; }
    bool async() const { return async_; }

private:
    droplet::WorkQueue* queue(bool start);

    droplet::Device& device_;
    int32_t priority_;  // kept for the caller; the simulated chip has one processor and prefers nobody
    bool async_;
    std::mutex mutex_;
    std::unique_ptr<droplet::WorkQueue> queue_;  // from the first work on: most streams of a pool are never used
};
