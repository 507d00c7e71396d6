// Whether float32 factors may be rounded: what the framework says of the call that this thread is in.
#pragma once

#include <diopi/diopirt_ext.h>

namespace diopi::launch {

inline bool may_round(diopiFloat32Use_t use) { return diopiMayRoundFloat32 != nullptr && diopiMayRoundFloat32(use); }

}  // namespace diopi::launch
