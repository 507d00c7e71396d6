// The caching allocator of device memory: blocks return to the stream that they were allocated on and are reused in its order.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <vector>

#include "block_pool.h"
#include "export.h"

namespace dipu {

// The one instance; it lives until the process ends. It never takes Python's lock.
DIPU_API c10::DeviceAllocator& device_allocator();

// The device of a pointer into a live or cached block; -1 when it is not device memory.
c10::DeviceIndex device_of_pointer(const void* pointer);

// The blocks of a device, allocated and free, in the order of their addresses.
DIPU_API std::vector<BlockState> memory_snapshot(c10::DeviceIndex device);

}  // namespace dipu
