// Whether a vendor library was built against headers that agree with standalone's.
#pragma once

#include <string>

namespace diopi::standalone {

// Throws Error, naming the library and the difference.
void check_abi(void* library, const std::string& path);

}  // namespace diopi::standalone
