// An in-order stream of work on one device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "graph.h"
#include "tang_runtime.h"
#include "work_queue.h"

namespace droplet {
class Device;
}

struct tangStream_st {
public:
    tangStream_st(droplet::Device& device, int32_t priority, bool async)
        : device_(device),
          priority_(priority),
          async_(async) {}
    tangStream_st(const tangStream_st&) = delete;
    tangStream_st& operator=(const tangStream_st&) = delete;

    // Runs the work now, or queues it with a copy of the arguments, or records it. Events have no place in a record.
    void submit(droplet::Work work, tangKernel_t kernel, const void* args, size_t bytes);
    void synchronize();  // throws Error (tangErrorStreamCapture) while it records

    // From now on the thread's work is recorded. Throws Error (tangErrorStreamCapture) when it is already.
    void begin_record();
    std::unique_ptr<tangGraph_st> end_record();  // null: something could not be recorded
    bool recording() const { return recording_.load(std::memory_order_acquire); }
    // What is asked of a stream while it records makes the record worthless. Throws Error (tangErrorStreamCapture).
    void refuse_while_recording(const char* what);
    bool idle();

    droplet::Device& device() const { return device_; }
    int32_t priority() const { return priority_; }
    bool async() const { return async_.load(std::memory_order_acquire); }
    // From now on work is queued, and nobody waits for it inside of a call.
    void make_async();

private:
    droplet::WorkQueue* queue(bool start);

    droplet::Device& device_;
    int32_t priority_;  // kept for the caller; the simulated chip has one processor and prefers nobody
    std::atomic<bool> async_;
    std::atomic<bool> recording_{false};
    bool record_is_whole_ = false;
    std::unique_ptr<tangGraph_st> record_;
    std::mutex mutex_;
    std::unique_ptr<droplet::WorkQueue> queue_;  // from the first work on: most streams of a pool are never used
};
