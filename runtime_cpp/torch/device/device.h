// The current device and the current streams of a thread, read on every operator call.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include <diopi/diopirt.h>

#include "export.h"

namespace dipu {

// e.g. the droplet has 2 devices; the bound lets per-thread state live in a plain array
inline constexpr int kMaxDevices = 16;

// A thread's current stream on one device; not ready until the thread first asks for it.
struct CurrentStream {
    diopiStreamHandle_t native = nullptr;
    int64_t id = 0;
    bool ready = false;
};

struct ThreadDevices {
    c10::DeviceIndex current = 0;
    CurrentStream streams[kMaxDevices];
};

// constinit spares each access the call of an initialization wrapper.
extern DIPU_API constinit thread_local ThreadDevices thread_devices;

inline c10::DeviceIndex current_device() noexcept { return thread_devices.current; }

// The number of devices; 0 when no vendor library is loaded or it reports an error.
DIPU_API c10::DeviceIndex device_count() noexcept;

// Makes `device` the calling thread's current device. Throws c10::Error when there is no such device.
DIPU_API void set_device(c10::DeviceIndex device);

// The same for destructors: a failure leaves the device as it was.
DIPU_API void set_device_unchecked(c10::DeviceIndex device) noexcept;

// Returns `device` itself, or the current device for -1. Throws c10::Error when out of range.
DIPU_API c10::DeviceIndex checked_device(c10::DeviceIndex device);

// Waits for all work on `device`.
DIPU_API void synchronize_device(c10::DeviceIndex device);

// Switches the current device for a block. When it is current already, the cost is one comparison.
class DeviceScope {
public:
    explicit DeviceScope(c10::DeviceIndex device) : thread_(thread_devices), previous_(thread_.current) {
        if (device != previous_) [[unlikely]] {
            set_device(device);
        }
    }
    ~DeviceScope() {
        if (thread_.current != previous_) [[unlikely]] {
            set_device_unchecked(previous_);
        }
    }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

    // Switches again within the block; the destructor still restores the first device.
    void enter(c10::DeviceIndex device) {
        if (device != thread_.current) [[unlikely]] {
            set_device(device);
        }
    }

    // The state of the thread that the block runs on; finding it anew is a call into the dynamic linker.
    const ThreadDevices& thread() const { return thread_; }

private:
    const ThreadDevices& thread_;
    c10::DeviceIndex previous_;
};

}  // namespace dipu
