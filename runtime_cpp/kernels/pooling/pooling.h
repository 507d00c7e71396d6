// Pooling of one to three dimensions and its gradients, whatever chooses the windows.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/tensor.h"
#include "space/volume.h"
#include "space/window.h"

namespace diopi::kernels {

// What a pooling reads for each of its results: windows that slide, or adaptive ones, which divide the input as evenly
// as they can; where those differ in size, their kernel size is zero.
struct Areas {
    int rank;
    Window axes[kAxes];

    DIOPI_HD Span area(int axis, int64_t o) const {
        if (axis < first_axis(rank)) return {0, 1};
        const Window& w = axes[axis];
        if (w.kernel == 0) return {o * w.input / w.output, ((o + 1) * w.input + w.output - 1) / w.output};
        const int64_t start = w.start(o), stop = start + w.kernel * w.dilation;
        const int64_t skipped = start >= 0 ? 0 : (-start + w.dilation - 1) / w.dilation;
        return {start + skipped * w.dilation, stop < w.input ? stop : w.input, w.dilation};
    }
    // The results that may read position i.
    DIOPI_HD Range covering(int axis, int64_t i) const {
        if (axis < first_axis(rank)) return {0, 1};
        const Window& w = axes[axis];
        if (w.kernel == 0) return {i * w.output / w.input, ((i + 1) * w.output + w.input - 1) / w.input};
        return w.covering(i);
    }
    // Whose windows can be walked together: they lie evenly.
    int64_t columns_at_once() const { return axes[2].kernel == 0 ? 1 : kWidth; }
    // Whether the windows of a line have columns in common, and more than one element in each of them.
    bool share_columns() const {
        const Window& w = axes[2];
        const bool tall = axes[0].kernel * axes[1].kernel != 1;  // adaptive ones may be
        return kWidth > 1 && w.kernel > 0 && w.stride < longest(2) && 2 * longest(2) <= kWidth && tall;
    }
    // So many of them lie within so many columns, however these are divided by the stride.
    int64_t windows_within(int64_t columns) const {
        return (columns - longest(2) - axes[2].stride) / axes[2].stride + 1;
    }
    // Behind the last column that the windows of a strip see, or would see in a longer line.
    DIOPI_HD int64_t columns_end(const Strip& strip) const {
        return axes[2].start(strip.first.x + strip.columns - 1) + longest(2);
    }
    // Which as many windows cover, or fewer.
    int64_t columns_covered() const {
        const Window& w = axes[2];
        const int64_t columns = w.kernel == 0 ? (kWidth - 2) * w.input / (w.output > w.input ? w.output : w.input)
                                              : (kWidth - 1) * w.stride + 2 - w.kernel;
        return columns < 1 ? 1 : columns < kWidth ? columns : kWidth;
    }
    // Calls f(x, lanes) for the taps along the columns of the windows of a strip of results: those lanes see an
    // element, lane zero at x.
    template <class F>
    DIOPI_HD void for_each_tap(const Strip& strip, F&& f) const {
        const Window& w = axes[2];
        const int64_t start = w.start(strip.first.x), reach = w.kernel * w.dilation;
        const Span taps = w.kernel == 0 ? area(2, strip.first.x) : Span{start, start + reach, w.dilation};
        for (int64_t x = taps.begin; x < taps.end; x += taps.step) {
            const Range columns = steps_inside(x, w.stride, strip.columns, w.input);
            f(x, Range{columns.begin * strip.channels, columns.end * strip.channels});
        }
    }
    // Calls f(x, count) for the columns of one window, no more than `most` at a time.
    template <class F>
    DIOPI_HD void for_each_run(const Span& columns, int64_t most, F&& f) const {
        for (int64_t x = columns.begin; x < columns.end; x += most * columns.step) {
            const int64_t rest = columns.end - x + columns.step - 1;
            const int64_t count = columns.step == 1 ? rest : rest / columns.step;
            f(x, count < most ? count : most);
        }
    }
    // Adds the parts of windows of one line to the columns [left, left + count) that they read.
    template <class A>
    DIOPI_HD void spread(const Strip& windows, const A* parts, int64_t left, int64_t count, A* sums) const {
        const Window& w = axes[2];
        const int64_t start = w.start(windows.first.x) - left;
        if (w.kernel > 0 && w.kernel < 4 * windows.columns) {
            for (int64_t x = start; x < start + w.kernel; ++x) {
                const Range lanes = steps_inside(x, w.stride, windows.columns, count);
                for_each_lane(lanes.begin, lanes.end, w.stride,
                              [&](int64_t c, int64_t at) { sums[x + at] += parts[c]; });
            }
            return;
        }
        for (int64_t c = 0; c < windows.columns; ++c) {
            const Span columns = area(2, windows.first.x + c);
            const A part = parts[c];
            const int64_t stop = columns.end < left + count ? columns.end - left : count;
            for (int64_t x = columns.begin < left ? 0 : columns.begin - left; x < stop; ++x) sums[x] += part;
        }
    }
    // No area is longer.
    DIOPI_HD int64_t longest(int axis) const {
        const Window& w = axes[axis];
        if (w.kernel == 0) return w.output == 0 ? 0 : w.input / w.output + 2;
        return (w.kernel - 1) * w.dilation + 1;
    }
};

// The lists of a pooling whose windows slide; the stride is the kernel size when none is given.
struct Sliding {
    Sizes kernel, stride, padding, dilation;
    bool adaptive = false;  // the windows are chosen for the size of the output, whatever the lists are
};
constexpr Sliding kAdaptive{{}, {}, {}, {}, true};

Areas areas_of(const TensorView& input, const TensorView& output, int rank, const Sliding& lists);

struct Divisor {
    int64_t fixed;  // zero: the window's own size
    bool count_padding;

    // What an average is divided by is the product of the lengths of its axes. Padding counts as far as it goes, what
    // lies behind it does not.
    DIOPI_HD int64_t length(const Areas& areas, int axis, int64_t o) const {
        const Window& w = areas.axes[axis];
        if (fixed != 0) return axis == 0 ? fixed : 1;
        if (w.kernel == 0) {
            const Span area = areas.area(axis, o);
            return area.end - area.begin;
        }
        const int64_t start = w.start(o), stop = start + w.kernel, padding = count_padding ? w.padding : 0;
        return (stop < w.input + padding ? stop : w.input + padding) - (start > -padding ? start : -padding);
    }
    // Of a line of windows, and along it.
    template <class A>
    DIOPI_HD A height(const Areas& areas, int64_t oz, int64_t oy) const {
        return static_cast<A>(length(areas, 0, oz) * length(areas, 1, oy));
    }
    template <class A>
    DIOPI_HD void lengths(const Areas& areas, const Strip& windows, A* lengths) const {
        const int64_t step = windows.columns == 1 ? 0 : 1;
        for (int64_t c = 0; c < windows.width(); ++c)
            lengths[c] = static_cast<A>(length(areas, 2, windows.first.x + c * step));
    }
};

// The bodies of operators; `indices` may be null: a gradient then finds the maxima of `input` again.
diopiError_t pool_maximum(Context ctx, int rank, Tensor out, Tensor indices, ConstTensor input, const Sliding& lists);
diopiError_t pool_maximum_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                   ConstTensor indices, const Sliding& lists);
diopiError_t pool_average(Context ctx, int rank, Tensor out, ConstTensor input, const Sliding& lists,
                          bool count_padding = false, const int64_t* divisor_override = nullptr);
diopiError_t pool_average_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output,
                                   const Sliding& lists, bool count_padding = false,
                                   const int64_t* divisor_override = nullptr);

}  // namespace diopi::kernels
