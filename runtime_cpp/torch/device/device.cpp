// Device selection over the vendor's optional functions; a vendor without them has one device.
#include "device.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "async_failure.h"
#include "device_api.h"
#include "memory/captures.h"
#include "stream.h"
#include "vendor_library.h"

namespace dipu {

constinit thread_local ThreadDevices thread_devices;

namespace {

c10::DeviceIndex count_devices() noexcept {
    try {
        const diopiDeviceApi_t& api = device_api();
        if (api.device_count == nullptr) {
            return 1;
        }
        int32_t count = 0;
        if (api.device_count(&count) != 0) {
            return 0;
        }
        return static_cast<c10::DeviceIndex>(std::clamp(count, 0, kMaxDevices));
    } catch (...) {
        return 0;
    }
}

}  // namespace

c10::DeviceIndex device_count() noexcept {
    if (!vendor_library_loaded()) {
        return 0;
    }
    static const c10::DeviceIndex count = count_devices();
    return count;
}

c10::DeviceIndex checked_device(c10::DeviceIndex device) {
    if (device == -1) {
        return current_device();
    }
    TORCH_CHECK(device >= 0 && device < device_count(), "there is no device dipu:", static_cast<int>(device),
                "; this machine has ", static_cast<int>(device_count()), " of them");
    return device;
}

void set_device(c10::DeviceIndex device) {
    if (device == thread_devices.current) {
        return;
    }
    checked_device(device);
    const diopiDeviceApi_t& api = device_api();
    if (api.set_device != nullptr) {
        check_device(api.set_device(device), "select the device");
    }
    thread_devices.current = device;
}

void set_device_unchecked(c10::DeviceIndex device) noexcept {
    try {
        set_device(device);
    } catch (...) {
        // A destructor cannot report; the device stays as it was.
        return;
    }
}

void synchronize_device(c10::DeviceIndex device) {
    const c10::DeviceIndex index = checked_device(device);
    check_not_recorded(index, kWaiting);
    const diopiDeviceApi_t& api = device_api();
    if (api.synchronize_device != nullptr) {
        check_device(api.synchronize_device(index), "synchronize the device");
        check_async_failure();
    } else {
        synchronize_streams(index);
    }
}

}  // namespace dipu
