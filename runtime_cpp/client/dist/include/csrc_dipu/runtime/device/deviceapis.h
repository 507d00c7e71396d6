// Part of the compatibility layer for C++ programs that were written for DIPU; see docs/moving-over.md.
#pragma once

#include <c10/core/Device.h>
#include <diopi/diopirt.h>

#include "csrc_dipu/base/basedef.h"

namespace dipu {

using deviceStream_t = diopiStreamHandle_t;

class DIPUStream {
public:
    explicit DIPUStream(deviceStream_t native) : native_(native) {}

    // The vendor's handle.
    deviceStream_t rawstream() const { return native_; }

private:
    deviceStream_t native_;
};

// The calling thread's current stream on a device; -1 is the current one.
DIPUStream getCurrentDIPUStream(c10::DeviceIndex device = -1);

}  // namespace dipu
