// Events over the device table, or over the host's clock.
#include "event.h"

#include <c10/util/Exception.h>

#include "async_failure.h"
#include "device_api.h"
#include "stream.h"

namespace dipu {

Event::Event(c10::DeviceIndex device, bool timed) : device_(checked_device(device)), timed_(timed) {
    const DeviceScope scope(device_);
    if (device_api().create_event != nullptr) {
        check_device(device_api().create_event(&native_, timed), "create an event");
    }
}

Event::~Event() {
    if (native_ != nullptr && device_api().destroy_event != nullptr) {
        device_api().destroy_event(native_);
    }
}

void Event::record(const c10::Stream& stream) {
    TORCH_CHECK(stream.device_index() == device_, "an event of dipu:", static_cast<int>(device_),
                " cannot be recorded on a stream of dipu:", static_cast<int>(stream.device_index()));
    if (native_ != nullptr) {
        const DeviceScope scope(device_);
        check_device(device_api().record_event(native_, native_stream(stream)), "record an event");
    }
    if (native_ == nullptr || device_api().elapsed_ms == nullptr) {
        synchronize_stream(stream);
    }
    moment_ = std::chrono::steady_clock::now();
}

void Event::block(const c10::Stream& stream) const {
    if (native_ == nullptr) {
        return;  // recording waited already
    }
    const DeviceScope scope(stream.device_index());
    if (device_api().wait_event != nullptr) {
        check_device(device_api().wait_event(native_stream(stream), native_), "wait for an event");
    } else {
        synchronize();
    }
}

bool Event::query() const {
    if (native_ == nullptr) {
        return true;
    }
    if (device_api().query_event == nullptr) {
        synchronize();
        return true;
    }
    bool done = false;
    check_device(device_api().query_event(native_, &done), "query an event");
    return done;
}

void Event::synchronize() const {
    if (native_ == nullptr) {
        return;
    }
    const DeviceScope scope(device_);
    if (device_api().sync_event != nullptr) {
        check_device(device_api().sync_event(native_), "synchronize an event");
        check_async_failure();
    } else {
        synchronize_device(device_);
    }
}

double Event::elapsed_ms(const Event& end) const {
    TORCH_CHECK(timed_ && end.timed_,
                "both events must be made with enable_timing=True to measure the time between them");
    TORCH_CHECK(query() && end.query(), "both events must be completed before the time between them is read");
    if (native_ == nullptr || device_api().elapsed_ms == nullptr) {
        return std::chrono::duration<double, std::milli>(end.moment_ - moment_).count();
    }
    float milliseconds = 0;
    check_device(device_api().elapsed_ms(native_, end.native_, &milliseconds), "measure the time between events");
    return milliseconds;
}

}  // namespace dipu
