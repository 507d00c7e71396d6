// The streams of each device: one default stream and a pool per priority, made on first use.
#pragma once

#include <c10/core/Stream.h>

#include "device.h"

namespace dipu {

inline constexpr int kPoolSize = 16;                    // streams of one priority
inline constexpr int kOwnStreams = 1 + 2 * kPoolSize;  // made here for one device; ids run from 0, the default stream
inline constexpr int kStreams = kOwnStreams + 64;  // and those that others made

// e.g. Stream(dipu:0, id 3)
c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id);

c10::Stream default_stream(c10::DeviceIndex device);

// The calling thread's current stream.
c10::Stream current_stream(c10::DeviceIndex device);

// Makes `stream` current for the calling thread on its device; returns the one before.
c10::Stream exchange_stream(const c10::Stream& stream);

// The next stream of a pool, round robin; priority < 0 is the high one, as in torch.
c10::Stream pool_stream(c10::DeviceIndex device, int priority);

// The stream with the vendor's handle `native`, whoever made it; its maker keeps it alive. Throws c10::Error for null, and
// when a device has too many streams of others.
DIPU_API c10::Stream external_stream(c10::DeviceIndex device, diopiStreamHandle_t native);

// -1 for a stream of high priority, 0 for others.
DIPU_API int stream_priority(c10::StreamId id);

// The vendor's handle.
diopiStreamHandle_t native_stream(const c10::Stream& stream);

bool query_stream(const c10::Stream& stream);
void synchronize_stream(const c10::Stream& stream);

// Waits for every stream made here so far on `device`.
void synchronize_streams(c10::DeviceIndex device);

}  // namespace dipu
