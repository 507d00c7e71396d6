// An event: a mark in a stream that can be waited for and that carries the time at which it was reached.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "stream.h"
#include "tang_runtime.h"

namespace droplet {

// What an event shares with the work that is queued for it, which may outlive the event.
class EventState {
public:
    using Clock = std::chrono::steady_clock;

    uint64_t begin_record();                  // the number of the new record
    void complete(uint64_t record);           // called where the stream reaches the mark
    void wait_for(uint64_t record);
    uint64_t last_record() const;             // 0: never recorded
    bool ready() const;                       // the last record is complete, or there is none
    std::optional<Clock::time_point> time() const;  // of the last record, when it is complete

private:
    mutable std::mutex mutex_;
    std::condition_variable completed_changed_;
    uint64_t recorded_ = 0;
    uint64_t completed_ = 0;
    Clock::time_point time_;
};

}  // namespace droplet

struct tangEvent_st {
public:
    explicit tangEvent_st(bool timed) : timed_(timed), state_(std::make_shared<droplet::EventState>()) {}

    void record(tangStream_st& stream);
    void block(tangStream_st& stream);  // later work of the stream waits for the last record
    bool ready() const { return state_->ready(); }
    void synchronize() { state_->wait_for(state_->last_record()); }
    bool timed() const { return timed_; }
    bool recorded() const { return state_->last_record() != 0; }
    std::optional<droplet::EventState::Clock::time_point> time() const { return state_->time(); }

private:
    bool timed_;
    std::shared_ptr<droplet::EventState> state_;
};
