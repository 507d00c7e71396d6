// What is known of a device: the vendor's own description, or a plain one.
#pragma once

#include <diopi/device.h>

#include "device.h"

namespace dipu {

DIPU_API diopiDeviceProperties_t device_properties(c10::DeviceIndex device);

}  // namespace dipu
