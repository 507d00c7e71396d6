// Streams and failures of one device.
#include "device.h"

#include <algorithm>

#include "chip.h"
#include "error.h"

namespace droplet {

Device::Device(int32_t index, uintptr_t base, size_t memory_bytes, ptrdiff_t delta, bool poison, bool async)
    : index_(index),
      async_(async),
      memory_(base, memory_bytes, delta, poison),
      default_stream_(std::make_shared<tangStream_st>(*this, 0, async)) {}

std::shared_ptr<tangStream_st> Device::create_stream(int32_t priority) {
    auto stream = std::make_shared<tangStream_st>(*this, priority, chip().settings().async);
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(std::remove_if(streams_.begin(), streams_.end(), [](const auto& old) { return old.expired(); }),
                   streams_.end());
    streams_.push_back(stream);
    return stream;
}

void Device::synchronize() {
    if (!async_) return;
    std::vector<std::weak_ptr<tangStream_st>> streams;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        streams = streams_;
    }
    default_stream_->synchronize();
    for (const auto& weak : streams) {
        if (const auto stream = weak.lock()) stream->synchronize();
    }
}

void Device::execute(Work work, tangKernel_t kernel, const void* args) noexcept {
    if (work == Work::kernel && failed()) return;
    try {
        kernel(args);
    } catch (const std::exception& error) {
        fail(error.what());
    } catch (...) {
        fail("a kernel ended with an exception that is not a std::exception");
    }
}

void Device::fail(const char* reason) noexcept {
    try {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (failure_.empty()) failure_ = reason;
    } catch (const std::bad_alloc&) {
        // The failure then has no words, but it is a failure all the same.
    }
    failed_.store(true, std::memory_order_release);
    leave_fast_launch();
}

void Device::throw_if_failed() const {
    if (!failed()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    throw Error(tangErrorLaunchFailure, "device " + std::to_string(index_) + " is in error: " + failure_ +
                                            "; call tangDeviceReset() or start the process again");
}

void Device::clear_failure() {
    const std::lock_guard<std::mutex> lock(mutex_);
    failure_.clear();
    failed_.store(false, std::memory_order_release);
}

}  // namespace droplet
