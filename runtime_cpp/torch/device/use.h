// Whether this process uses the device. Importing torch does not start it, and a program that never uses it gets no thread,
// no fork handler and no backward thread by it.
#pragma once

#include <c10/core/Device.h>

#include <atomic>

#include "export.h"

namespace dipu {

namespace detail {
extern DIPU_API constinit std::atomic<bool> used;
DIPU_API void begin_use();
}  // namespace detail

// Called by whatever a process can do first with the device.
inline void use_device() {
    if (!detail::used.load(std::memory_order_relaxed)) [[unlikely]] {
        detail::begin_use();
    }
}

// Not in a forked child of a process that uses it.
DIPU_API bool device_in_use() noexcept;

// How many devices torch has to care for; 0 where device_in_use() is false.
c10::DeviceIndex devices_in_use() noexcept;

// Whether this is such a child: a device's threads and streams do not survive a fork.
DIPU_API bool in_bad_fork() noexcept;

}  // namespace dipu
