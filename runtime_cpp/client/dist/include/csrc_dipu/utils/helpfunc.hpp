// Part of the compatibility layer for C++ programs that were written for DIPU; see docs/moving-over.md.
#pragma once

#include "csrc_dipu/base/basedef.h"

namespace dipu {

// What the loaded library calls its vendor, in capitals, e.g. "DROPLET".
const char* VendorTypeToStr(VendorDeviceType vendor);

}  // namespace dipu
