// Part of the compatibility layer for C++ programs that were written for DIPU; see docs/moving-over.md.
#pragma once

#include <c10/core/DeviceType.h>

namespace dipu {

inline constexpr c10::DeviceType DIPU_DEVICE_TYPE = c10::DeviceType::PrivateUse1;

// DIPU is built for one vendor. One torch_dipu serves all of them, and which one is known when its library is loaded.
enum class VendorDeviceType { Loaded };

inline constexpr VendorDeviceType VENDOR_TYPE = VendorDeviceType::Loaded;

}  // namespace dipu
