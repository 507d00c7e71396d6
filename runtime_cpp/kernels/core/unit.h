// Units: elements that are only moved, told apart by their size alone, so that four instantiations serve every dtype.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "dtype.h"

namespace diopi::kernels {

template <class T>
struct Unit {
    using plain = T;
#if defined(__CUDACC__)
    using type = T;
#else
    using type [[gnu::may_alias]] = T;  // a unit reads what another kernel wrote as a float
#endif
};

// Calls f(Unit<U>{}) (U is its `plain`) for the unsigned U that is as wide as an element of `dtype`.
template <class F>
void dispatch_unit(diopiDtype_t dtype, F&& f) {
    switch (element_size(dtype)) {
        case 1: f(Unit<uint8_t>{}); break;
        case 2: f(Unit<uint16_t>{}); break;
        case 4: f(Unit<uint32_t>{}); break;
        case 8: f(Unit<uint64_t>{}); break;
        default: fail_dtype(dtype);
    }
}

}  // namespace diopi::kernels
