// Order between the streams of a program, by events.
#include "lanes.h"

#include <c10/util/Exception.h>

#include "device/stream.h"

namespace dipu::compiled {

Lanes::Lanes(c10::DeviceIndex device, std::size_t lanes, std::size_t events) : device_(device), begin_(device, false) {
    for (std::size_t lane = 1; lane < lanes; ++lane) {
        streams_.push_back(pool_stream(device, 0));
        ends_.push_back(std::make_unique<Event>(device, false));
    }
    for (std::size_t event = 0; event < events; ++event) {
        marks_.push_back(std::make_unique<Event>(device, false));
    }
}

Lanes::Run::Run(Lanes& lanes, diopiContextHandle_t first)
    : lanes_(lanes),
      first_(current_stream(lanes.device_)),
      contexts_(lanes.streams_.size() + 1, nullptr) {
    lanes_.begin_.record(first_);
    contexts_[0] = first;
}

Lanes::Run::~Run() {
    exchange_stream(first_);
    for (std::size_t lane = 1; lane < contexts_.size(); ++lane) {
        if (contexts_[lane] == nullptr) {
            continue;
        }
        try {
            lanes_.ends_[lane - 1]->record(stream(lane));
            lanes_.ends_[lane - 1]->block(first_);
        } catch (const c10::Error&) {  // a device that takes no events any more tells it to whoever asks it next
        }
    }
}

diopiContextHandle_t Lanes::Run::enter(std::size_t lane) {
    // Memory that a function asks for comes from the stream that it runs on.
    exchange_stream(stream(lane));
    now_ = lane;
    if (contexts_[lane] == nullptr) {
        lanes_.begin_.block(stream(lane));
        contexts_[lane] = *own_.emplace_back(std::make_unique<Context>(lanes_.device_));
    }
    return contexts_[lane];
}

void Lanes::Run::mark(std::size_t event) { lanes_.marks_[event]->record(stream(now_)); }

void Lanes::Run::wait(std::size_t event) { lanes_.marks_[event]->block(stream(now_)); }

}  // namespace dipu::compiled
