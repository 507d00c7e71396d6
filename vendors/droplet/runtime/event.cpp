// Recording and waiting.
#include "event.h"

namespace droplet {
namespace {

// A record of an event on its way through a stream. Queued work owns it through a plain pointer and deletes it.
struct Mark {
    std::shared_ptr<EventState> state;
    uint64_t record;
};

std::unique_ptr<Mark> taken_from(const void* args) { return std::unique_ptr<Mark>(*static_cast<Mark* const*>(args)); }

void submit_mark(tangStream_st& stream, tangKernel_t work, std::unique_ptr<Mark> mark) {
    Mark* pointer = mark.get();
    stream.submit(Work::control, work, &pointer, sizeof pointer);
    static_cast<void>(mark.release());  // only now: a failing submit leaves it to us
}

}  // namespace

uint64_t EventState::begin_record() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++recorded_;
}

void EventState::complete(uint64_t record) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (record <= completed_) return;
        completed_ = record;
        time_ = Clock::now();
    }
    completed_changed_.notify_all();
}

void EventState::wait_for(uint64_t record) {
    std::unique_lock<std::mutex> lock(mutex_);
    completed_changed_.wait(lock, [this, record] { return completed_ >= record; });
}

uint64_t EventState::last_record() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return recorded_;
}

bool EventState::ready() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return completed_ >= recorded_;
}

std::optional<EventState::Clock::time_point> EventState::time() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (recorded_ == 0 || completed_ < recorded_) return std::nullopt;
    return time_;
}

}  // namespace droplet

void tangEvent_st::record(tangStream_st& stream) {
    using droplet::Mark;
    stream.refuse_while_recording("an event was recorded");
    const uint64_t record = state_->begin_record();
    if (!stream.async()) {
        state_->complete(record);
        return;
    }
    droplet::submit_mark(
        stream,
        [](const void* args) {
            const auto mark = droplet::taken_from(args);
            mark->state->complete(mark->record);
        },
        std::make_unique<Mark>(Mark{state_, record}));
}

void tangEvent_st::block(tangStream_st& stream) {
    using droplet::Mark;
    stream.refuse_while_recording("an event was waited for");
    if (state_->ready()) return;
    stream.make_async();
    droplet::submit_mark(
        stream,
        [](const void* args) {
            const auto mark = droplet::taken_from(args);
            mark->state->wait_for(mark->record);
        },
        std::make_unique<Mark>(Mark{state_, state_->last_record()}));
}
