// Submission of work to a stream.
#include "stream.h"

#include <string>
#include <utility>

#include "chip.h"
#include "device.h"
#include "error.h"

void tangStream_st::submit(droplet::Work work, tangKernel_t kernel, const void* args, size_t bytes) {
    if (recording()) {
        record_->append(kernel, args, bytes);
    } else if (async()) {
        queue(true)->post(work, kernel, args, bytes);
    } else {
        device_.execute(work, kernel, args);
    }
}

void tangStream_st::make_async() {
    if (async_.exchange(true)) return;
    device_.note_async_stream();
    droplet::chip().note_async_stream();
}

void tangStream_st::begin_record() {
    droplet::require(!recording(), tangErrorStreamCapture, "tangStreamBeginCapture: the stream is recorded already");
    record_ = std::make_unique<tangGraph_st>();
    record_is_whole_ = true;
    recording_.store(true, std::memory_order_release);
}

std::unique_ptr<tangGraph_st> tangStream_st::end_record() {
    droplet::require(recording(), tangErrorStreamCapture, "tangStreamEndCapture: the stream is not recorded");
    recording_.store(false, std::memory_order_release);
    std::unique_ptr<tangGraph_st> record = std::move(record_);
    return record_is_whole_ ? std::move(record) : nullptr;
}

void tangStream_st::refuse_while_recording(const char* what) {
    if (!recording()) return;
    record_is_whole_ = false;
    throw droplet::Error(tangErrorStreamCapture,
                         std::string(what) + " while the stream was recorded, which cannot be done again");
}

void tangStream_st::synchronize() {
    refuse_while_recording("the host waited");
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
