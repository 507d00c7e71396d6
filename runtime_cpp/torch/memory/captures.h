// What is recorded for a graph right now, and the private pools of memory that graphs write in every replay.
#pragma once

#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <atomic>

#include "export.h"

namespace dipu {

class CapturedDraws;

inline constexpr int kPrivatePools = 32;
inline constexpr int kNoPool = -1;

// How many streams are recorded; 0 but while a graph is made.
DIPU_API extern std::atomic<int> recorded_streams;

// The pool that memory of `stream` comes from: that of its graph while it is recorded, else kNoPool.
DIPU_API int recorded_pool(c10::DeviceIndex device, c10::StreamId stream);

inline int pool_for(c10::DeviceIndex device, c10::StreamId stream) {
    return recorded_streams.load(std::memory_order_relaxed) == 0 ? kNoPool : recorded_pool(device, stream);
}

// Whose work a recording is about: what others do meanwhile, such as waiting for results, it forbids or not.
enum class RecordedThreads { kAll, kOwn };

// Whether a stream of the device is recorded, so that the calling thread may not do what is done once.
DIPU_API bool is_recorded(c10::DeviceIndex device);

// Throws c10::Error for what would be done once, now, and not in every replay. e.g. "wait for results"
inline void check_not_recorded(c10::DeviceIndex device, const char* what) {
    if (recorded_streams.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        TORCH_CHECK(!is_recorded(device), "a graph is captured on dipu:", static_cast<int>(device), ", which cannot ",
                    what);
    }
}

inline constexpr const char* kWaiting =
    "wait for results: leave out .item(), copies to the CPU and operators that run there";

// What the graph draws that `stream` is recorded for; null where it is not.
CapturedDraws* recorded_draws(const c10::Stream& stream);

// From now on memory of `stream` comes from `pool`, and what it draws goes to `draws`. Throws c10::Error if a stream of its device is
// recorded already.
void start_record(const c10::Stream& stream, int pool, CapturedDraws& draws,
                  RecordedThreads threads = RecordedThreads::kAll);
void stop_record(const c10::Stream& stream);

}  // namespace dipu
