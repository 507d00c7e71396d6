// Pooling of one to three dimensions and its gradients, whatever chooses the windows.
#ifndef DIOPI_KERNELS_CORE_POOLING_H_
#define DIOPI_KERNELS_CORE_POOLING_H_

#include <diopi/diopirt.h>

#include <cstdint>

#include "tensor.h"
#include "volume.h"
#include "window.h"

namespace diopi::kernels {

// What a pooling reads for each of its results: windows that slide, or adaptive ones, which divide the input as evenly
// as they can and of whose axes only the sizes count.
struct Areas {
    int rank;
    bool adaptive;
    Window axes[kAxes];

    DIOPI_HD Span area(int axis, int64_t o) const {
        if (axis < first_axis(rank)) return {0, 1};
        const Window& w = axes[axis];
        if (adaptive) return {o * w.input / w.output, ((o + 1) * w.input + w.output - 1) / w.output};
        const int64_t start = w.start(o);
        const int64_t stop = start + w.kernel * w.dilation;
        const int64_t skipped = start >= 0 ? 0 : (-start + w.dilation - 1) / w.dilation;
        return {start + skipped * w.dilation, stop < w.input ? stop : w.input, w.dilation};
    }
    // With the padding that the window covers, but not what lies behind the padding.
    DIOPI_HD int64_t padded_length(int axis, int64_t o) const {
        const Window& w = axes[axis];
        const int64_t start = w.start(o);
        const int64_t stop = start + w.kernel;
        const int64_t limit = w.input + w.padding;
        return (stop < limit ? stop : limit) - start;
    }
    // The results that may read position i.
    DIOPI_HD Span covering(int axis, int64_t i) const {
        if (axis < first_axis(rank)) return {0, 1};
        const Window& w = axes[axis];
        if (adaptive) return {i * w.output / w.input, ((i + 1) * w.output + w.input - 1) / w.input};
        const Range range = w.covering(i);
        return {range.begin, range.end};
    }
    // No area is longer.
    int64_t longest(int axis) const {
        const Window& w = axes[axis];
        if (adaptive) return w.output == 0 ? 0 : w.input / w.output + 2;
        return (w.kernel - 1) * w.dilation + 1;
    }
};

// The lists of a pooling; the stride is the kernel size when none is given.
struct Sliding {
    diopiSize_t kernel, stride, padding, dilation;
};

Areas sliding_areas(const TensorView& input, const TensorView& output, int rank, const Sliding& lists);
Areas adaptive_areas(const TensorView& input, const TensorView& output, int rank);

struct Divisor {
    int64_t fixed;  // zero: the window's own size
    bool count_padding;
};

// `indices` may be undefined.
void pool_maximum(Context ctx, const TensorView& out, const TensorView& indices, const TensorView& input,
                  const Areas& areas);
void pool_maximum_backward(Context ctx, const TensorView& grad_input, const TensorView& grad_output,
                           const TensorView& indices, int rank);
void pool_average(Context ctx, const TensorView& out, const TensorView& input, const Areas& areas,
                  const Divisor& divisor);
void pool_average_backward(Context ctx, const TensorView& grad_input, const TensorView& grad_output, const Areas& areas,
                           const Divisor& divisor);

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_POOLING_H_
