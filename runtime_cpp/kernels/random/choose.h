// A choice by weight.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace diopi::kernels {

// The first of `count` places at which the running sum of the weights exceeds `mark`; the last one with any weight
// where none does.
template <class Weight>
DIOPI_HD inline int64_t choose(int64_t count, double mark, Weight&& weight) {
    double sum = 0;
    int64_t last = 0;
    for (int64_t c = 0; c < count; ++c) {
        const double own = weight(c);
        if (!(own > 0)) continue;
        last = c;
        sum += own;
        if (mark < sum) return c;
    }
    return last;
}

}  // namespace diopi::kernels
