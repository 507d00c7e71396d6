// torch.accelerator.Graph on dipu: what a stream is given is recorded by the vendor, and done again by replay().
#pragma once

#include "export.h"

namespace dipu {

// Makes the graphs known to torch, where this release has them. The device has its name by then.
DIPU_API void register_graphs();

}  // namespace dipu
