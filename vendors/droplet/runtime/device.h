// One device of the chip: its memory, its streams and the failure that it is in, if any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory_pool.h"
#include "stream.h"

namespace droplet {

class Device {
public:
    Device(int32_t index, uintptr_t base, size_t memory_bytes, ptrdiff_t delta, bool poison, bool async);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    int32_t index() const { return index_; }
    MemoryPool& memory() { return memory_; }

    tangStream_st& default_stream() { return *default_stream_; }
    std::shared_ptr<tangStream_st> create_stream(int32_t priority);
    // Waits for every stream of the device.
    void synchronize();

    // Runs work on the calling thread. A kernel that throws leaves the device in error.
    void execute(Work work, tangKernel_t kernel, const void* args) noexcept;
    void note_async_stream() { async_.store(true); }
    bool failed() const { return failed_.load(std::memory_order_acquire); }
    void throw_if_failed() const;  // Error (tangErrorLaunchFailure)
    void clear_failure();

private:
    void fail(const char* reason) noexcept;

    int32_t index_;
    std::atomic<bool> async_;  // some stream is
    MemoryPool memory_;
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_;
    std::string failure_;
    std::vector<std::weak_ptr<tangStream_st>> streams_;
    std::shared_ptr<tangStream_st> default_stream_;
};

}  // namespace droplet
