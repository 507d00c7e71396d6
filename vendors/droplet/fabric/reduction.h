// How values of several ranks become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tcl.h"

namespace droplet {

struct Reduction {
    tclRedOp_t op = tclSum;  // tclAvg: the sum, divided by the number of the inputs
    double factor = 1;       // of each value, where there is one; for numbers with a fraction
    bool has_factor = false;
};

size_t size_of(tclDataType_t type);

// Reduces the inputs, in their order, to `result`, which may be one of them. Each result is rounded once.
void reduce(const std::vector<const void*>& inputs, void* result, size_t count, tclDataType_t type,
            const Reduction& reduction);

}  // namespace droplet
