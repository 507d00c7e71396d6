// One piece of device work while a profiler records: two timed events around it. Without a profiler it is one relaxed load.
#pragma once

#include <diopi/diopirt.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "export.h"

namespace dipu {

// True between start_spans() and stop_spans().
extern DIPU_API constinit std::atomic<bool> spans_wanted;

inline bool recording_spans() noexcept { return spans_wanted.load(std::memory_order_relaxed); }

struct OpenSpan;

// Work that is put on a stream during its life. A failure of the events loses the span and nothing else.
class DIPU_API CallSpan {
public:
    // A vendor function; `name` lives for ever, e.g. "diopiAdd".
    CallSpan(const char* name, diopiContextHandle_t context) noexcept;
    // Other work on the current stream of `device`, e.g. "all_reduce".
    CallSpan(const char* name, int8_t device) noexcept;
    // A copy of `bytes` on the current stream of `device`.
    CallSpan(const char* name, int8_t device, std::size_t bytes) noexcept;
    ~CallSpan();
    CallSpan(const CallSpan&) = delete;
    CallSpan& operator=(const CallSpan&) = delete;

private:
    OpenSpan* open_;
};

}  // namespace dipu
