// Sizes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace dipu {

// e.g. "1.50 GiB"
std::string readable(uint64_t bytes);

}  // namespace dipu
