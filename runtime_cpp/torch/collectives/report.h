// Which way collectives took: by the vendor's library, or through the host.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

#include "export.h"

namespace dipu::collectives {

struct CollectiveCount {
    std::string collective;  // e.g. "dicl:all_reduce"
    std::string dtype;       // e.g. "Float"
    std::string cause;       // why it went through the host; empty if it did not
    int64_t calls = 0;
};

// `title` is a literal; `cause` is empty where the library served the call.
void count_collective(const char* title, c10::ScalarType dtype, const std::string& cause);

// Of this process, in the order of the names.
DIPU_API std::vector<CollectiveCount> collective_report();
DIPU_API void reset_collective_report();

}  // namespace dipu::collectives
