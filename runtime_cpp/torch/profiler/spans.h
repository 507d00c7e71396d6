// What the device did and when, on the host's clock: recorded between start_spans and stop_spans, read by the profiler.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <vector>

#include "call_span.h"

namespace dipu {

struct Span {
    const char* name;  // e.g. "diopiAdd", "copy, host to device"
    bool is_copy;
    c10::DeviceIndex device;
    c10::StreamId stream;
    std::size_t bytes;  // of a copy
    uint64_t operator_id;  // what enter_operator was told last in that thread; 0 outside of operators
    int32_t thread;  // the system's id
    int64_t host_start = 0;  // nanoseconds since the epoch: the call on the host
    int64_t host_end = 0;
    int64_t start = 0;  // and the work on the device, on the same clock
    int64_t end = 0;
};

// Forgets earlier spans. One recording at a time: a second start continues with an empty list.
void start_spans();

// Ends the recording. collected_spans then waits for the device and returns what was recorded, in the order of the calls.
void stop_spans();
std::vector<Span> collected_spans();

// The operator that the calling thread runs, for Span::operator_id; calls nest.
void enter_operator(uint64_t id);
void leave_operator();

}  // namespace dipu
