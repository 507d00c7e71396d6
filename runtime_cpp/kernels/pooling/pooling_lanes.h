// What poolings have in common on their way through a strip of windows.
#pragma once

#include "pooling.h"

namespace diopi::kernels {

// Where a result is alone, so many of its elements are worked on side by side.
constexpr int64_t kTaps = kWidth < 32 ? kWidth : 32;

// Calls f(from, to) until what lanes [0, lanes) hold is joined in the lanes [0, width).
template <class F>
DIOPI_HD inline void join_lanes(int64_t lanes, int64_t width, F&& f) {
    for (int64_t half = lanes / 2; half >= width; half /= 2) {
        for (int64_t c = 0; c < half; ++c) f(half + c, c);
    }
}

// Two axes that every window covers as a whole are one.
inline void join_whole_axes(Areas& areas, Volume& large) {
    for (int axis = first_axis(areas.rank); axis + 1 < kAxes; ++axis) {
        Window &outer = areas.axes[axis], &inner = areas.axes[axis + 1];
        const bool whole = outer.kernel == large.sizes[axis] && inner.kernel == large.sizes[axis + 1] &&
                           outer.padding + inner.padding == 0 && outer.output == 1 && inner.output == 1;
        if (!whole || large.steps[axis] != large.steps[axis + 1] * inner.kernel) continue;
        large.sizes[axis + 1] *= large.sizes[axis];
        large.sizes[axis] = 1;
        inner = window_of(large.sizes[axis + 1], 1, large.sizes[axis + 1], large.sizes[axis + 1], 0, 1);
        outer = window_of(1, 1, 1, 1, 0, 1);
    }
}

}  // namespace diopi::kernels
