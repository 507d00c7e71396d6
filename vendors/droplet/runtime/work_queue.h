// The queue of an asynchronous stream: a ring of work and the thread that runs it in order.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tang_runtime.h"

namespace droplet {

class Device;

// Work of the kind `kernel` is skipped on a device that has failed; `control` (events) always runs, so that nobody waits
// for ever.
enum class Work { kernel, control };

class WorkQueue {
public:
    explicit WorkQueue(Device& device);
    ~WorkQueue();  // after all work has run
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    // Copies the arguments; waits while the ring is full.
    void post(Work work, tangKernel_t kernel, const void* args, size_t bytes);
    void synchronize();
    bool idle() const;

private:
    static constexpr size_t kInlineBytes = 448;
    static constexpr size_t kSlots = 256;

    struct alignas(64) Slot {
        alignas(64) std::array<unsigned char, kInlineBytes> args;
        std::unique_ptr<unsigned char[]> large_args;  // when they do not fit in `args`
        tangKernel_t kernel = nullptr;
        Work work = Work::kernel;
    };

    void run();

    Device& device_;
    std::vector<Slot> slots_{kSlots};
    mutable std::mutex mutex_;
    std::condition_variable posted_changed_;
    std::condition_variable finished_changed_;
    uint64_t posted_ = 0;
    uint64_t finished_ = 0;
    bool stopping_ = false;
    std::thread worker_;  // last: it uses all of the above
};

}  // namespace droplet
