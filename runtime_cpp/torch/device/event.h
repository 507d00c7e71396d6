// Events: the vendor's, or host timestamps after a synchronization where the vendor has none.
#pragma once

#include <c10/core/Stream.h>
#include <diopi/device.h>

#include <chrono>

#include "device.h"

namespace dipu {

class Event {
public:
    Event(c10::DeviceIndex device, bool timed);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(const c10::Stream& stream);
    // Makes later work on `stream` wait for the event.
    void block(const c10::Stream& stream) const;
    bool query() const;
    void synchronize() const;
    c10::DeviceIndex device() const { return device_; }

    // Milliseconds between two recorded events that both measure time.
    double elapsed_ms(const Event& end) const;

private:
    c10::DeviceIndex device_;
    bool timed_;
    diopiEventHandle_t native_ = nullptr;
    std::chrono::steady_clock::time_point moment_;  // of a vendor without events
};

}  // namespace dipu
