// Starting the backend: everything that would otherwise be a global constructor, in a stated order.
#pragma once

#include <string>

#include "export.h"

namespace dipu {

// Loads the vendor library and registers the backend with torch; later calls do nothing. Throws c10::Error with one
// readable sentence, before anything is registered, when the vendor library is unusable.
// The library is the one that DIPU_VENDOR_LIBRARY names, else `vendor_library`, else the one beside this library.
DIPU_API void initialize(const std::string& vendor_library);

}  // namespace dipu
