// Windows that slide over a plane: the geometry that convolution, pooling and im2col have in common.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/error.h"
#include "core/host_device.h"
#include "divider.h"

namespace diopi::kernels {

// A half-open range of positions.
struct Range {
    int64_t begin;
    int64_t end;

    DIOPI_HD bool operator==(const Range& other) const { return begin == other.begin && end == other.end; }
};

// The k of [0, count) for which first + k * step lies in [0, size).
DIOPI_HD inline Range steps_inside(int64_t first, int64_t step, int64_t count, int64_t size) {
    const int64_t begin = first >= 0 ? 0 : (-first + step - 1) / step;
    const int64_t room = size - first;
    if (room > (count - 1) * step) return {begin, count};
    return {begin, room <= 0 ? 0 : (room + step - 1) / step};
}

// One axis of a window. Position p of window o reads input position o * stride - padding + p * dilation.
struct Window {
    int64_t input;
    int64_t output;
    int64_t kernel;
    int64_t stride;
    int64_t padding;
    int64_t dilation;
    Divider by_stride;

    DIOPI_HD int64_t start(int64_t window) const { return window * stride - padding; }

    // The windows that may contain input position i; where dilation leaves gaps, contains() decides.
    DIOPI_HD Range covering(int64_t i) const {
        const int64_t reach = i + padding - dilation * (kernel - 1);
        const int64_t first = reach <= 0 ? 0 : by_stride.quotient(reach + stride - 1);
        const int64_t last = by_stride.quotient(i + padding);
        return {first, last < output ? last + 1 : output};
    }

    // Where in window o input position i lies; -1 when dilation steps over it. For o within covering(i).
    DIOPI_HD int64_t place(int64_t window, int64_t i) const {
        const int64_t distance = i - start(window);
        return distance % dilation == 0 ? distance / dilation : -1;
    }

    // The positions p of window o that lie inside of the input.
    DIOPI_HD Range inside(int64_t window) const { return steps_inside(start(window), dilation, kernel, input); }
};

struct Windows {
    Window rows;
    Window columns;
};

inline Window window_of(int64_t input, int64_t output, int64_t kernel, int64_t stride, int64_t padding,
                        int64_t dilation) {
    require(kernel > 0 && stride > 0 && dilation > 0 && padding >= 0,
            "a window needs a positive kernel size, stride and dilation and no negative padding");
    return {input, output, kernel, stride, padding, dilation, Divider(stride)};
}

}  // namespace diopi::kernels
