// A team of one thread.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace diopi::launch {

// All threads of a larger one call reduce() and scan() equally often.
struct Alone {
    static constexpr bool kAlone = true;
    DIOPI_HD static constexpr int64_t rank() { return 0; }
    DIOPI_HD static constexpr int64_t size() { return 1; }
    // The values of all threads, joined by a tree that depends on the team's size only; each thread gets the result.
    template <class T, class Join>
    DIOPI_HD static T reduce(T value, const Join&) {
        return value;
    }
    // The values of the threads before this one, joined to `none`; `all` receives those of all threads.
    template <class T, class Join>
    DIOPI_HD static T scan(T value, T none, const Join&, T* all) {
        *all = value;
        return none;
    }
};

}  // namespace diopi::launch
