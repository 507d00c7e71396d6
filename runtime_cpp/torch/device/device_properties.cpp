// Properties from the vendor's table, with defaults for what it lacks.
#include "device_properties.h"

#include <cstdio>

#include "device_api.h"

namespace dipu {

diopiDeviceProperties_t device_properties(c10::DeviceIndex device) {
    const c10::DeviceIndex index = checked_device(device);
    const diopiDeviceApi_t& api = device_api();
    diopiDeviceProperties_t properties{};
    if (api.device_properties != nullptr) {
        check_device(api.device_properties(index, &properties), "read the properties of the device");
        return properties;
    }
    std::snprintf(properties.name, sizeof(properties.name), "dipu");
    properties.multi_processor_count = 1;
    uint64_t free_bytes = 0;
    if (api.memory_info != nullptr) {
        check_device(api.memory_info(index, &free_bytes, &properties.total_memory), "read the size of its memory");
    }
    return properties;
}

}  // namespace dipu
