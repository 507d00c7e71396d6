// Starting the backend: everything that would otherwise be a global constructor, in a stated order.
#pragma once

#include "export.h"

namespace dipu {

// Loads the vendor library and registers the backend with torch; later calls do nothing. Throws c10::Error with one
// readable sentence, before anything is registered, when the vendor library is unusable.
DIPU_API void initialize();

}  // namespace dipu
