// The caching allocator of device memory: blocks return to the stream that they were allocated on and are reused in its order.
// Under AddressSanitizer nothing is cached: each block has the size of its tensor, and goes back to the vendor at once.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <memory>
#include <optional>
#include <vector>

#include "block_pool.h"
#include "export.h"

namespace dipu {

// The one instance; it lives until the process ends. It never takes Python's lock.
DIPU_API c10::DeviceAllocator& device_allocator();

// The device of a pointer into a live or cached block; -1 when it is not device memory.
c10::DeviceIndex device_of_pointer(const void* pointer);

struct OwnedBlock {
    c10::DeviceIndex device;
    BlockState state;
};

// The block that a pointer lies in, allocated or not.
std::optional<OwnedBlock> block_of_pointer(const void* pointer);

// Memory without a tensor, on `stream` of `device`. Throws torch's OutOfMemoryError.
DIPU_API void* allocate_raw(c10::DeviceIndex device, std::size_t bytes, c10::StreamId stream);

// Gives it back. Throws c10::Error, and notes a fault of the memory check, when nothing is allocated at `pointer`.
DIPU_API void free_raw(void* pointer);

// The memory of `owner`, a pointer of this allocator, for somebody else: `lender` lives until the loan ends, and so may `owner`.
c10::DataPtr lent(const c10::DataPtr& owner, std::shared_ptr<const void> lender);
bool is_lent(const c10::DataPtr& pointer);
// Whether it owns memory of this allocator, or none.
bool is_allocated(const c10::DataPtr& pointer);

// Makes the current stream wait for others that were given the memory of `owner`, by record_stream(), while it was lent.
void wait_for_users(const c10::DataPtr& owner);

// The memory of a graph's pool becomes that of the streams it was allocated on. Nothing may run that still uses it.
void dissolve_pool(int pool);

// The part of a device's memory, 0 to 1, that this process may reserve; at first 1.
DIPU_API void set_memory_fraction(c10::DeviceIndex device, double fraction);
DIPU_API double memory_fraction(c10::DeviceIndex device);

// The blocks of a device, allocated and free, in the order of their addresses.
DIPU_API std::vector<BlockState> memory_snapshot(c10::DeviceIndex device);

}  // namespace dipu
