// The sizes of a 2-D convolution, by which its kernels share out their work.
#ifndef DIOPI_KERNELS_CORE_CONVOLUTION_SHAPE_H_
#define DIOPI_KERNELS_CORE_CONVOLUTION_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "window.h"

namespace diopi::kernels {

// The matrix of windows is made for as many images at a time as fit into this many elements.
constexpr int64_t kColumnElements = int64_t{1} << 22;

struct ConvolutionShape {
    Windows windows;
    int64_t batch, channels, filters, groups;

    int64_t group_channels() const { return channels / groups; }
    int64_t group_filters() const { return filters / groups; }
    int64_t taps() const { return windows.rows.kernel * windows.columns.kernel; }
    int64_t row_length() const { return taps() * group_channels(); }  // of the matrix of windows
    int64_t input_pixels() const { return windows.rows.input * windows.columns.input; }
    int64_t output_pixels() const { return windows.rows.output * windows.columns.output; }
    int64_t images_at_once() const {
        const int64_t one = std::max<int64_t>(1, output_pixels() * row_length());
        return std::max<int64_t>(1, std::min(batch, kColumnElements / one));
    }

    // One input channel per group: there is no sum over channels that a matrix product could do.
    bool depthwise() const { return groups > 1 && groups == channels; }

    // The windows are the pixels themselves: the input is its own matrix of windows.
    bool pointwise() const {
        const auto plain = [](const Window& w) { return w.kernel == 1 && w.stride == 1 && w.padding == 0; };
        return plain(windows.rows) && plain(windows.columns);
    }
};

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_CONVOLUTION_SHAPE_H_
