// torch's profiler on the device: times of vendor functions and copies, on their streams.
#pragma once

#include <atomic>

#include "export.h"

namespace dipu {

void register_profiler();

// From the first profile of the process on: who reports to profilers need not ask torch before.
extern DIPU_API constinit std::atomic<bool> profiled;

}  // namespace dipu
