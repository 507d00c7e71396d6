// Pinned host memory, which a device copies from and to without waiting.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

#include "export.h"

namespace dipu {

DIPU_API at::HostAllocator& host_allocator();

// True for a pointer into memory that host_allocator gave.
bool is_pinned(const void* pointer);

// Notes that `stream` copies from or to `pointer`; its block is reused only after that. Nothing for other memory.
void record_pinned(const void* pointer, const c10::Stream& stream);

}  // namespace dipu
