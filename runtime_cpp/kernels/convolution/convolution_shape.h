// The sizes of a convolution of up to three dimensions, by which its kernels share out their work.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/host_device.h"
#include "space/window.h"

namespace diopi::kernels {

// The matrix of windows is made for as many images at a time as fit into this many elements.
constexpr int64_t kColumnElements = int64_t{1} << 22;

// A plane is a volume of depth one.
struct VolumeWindows {
    Window depth;
    Window rows;
    Window columns;
};

// A pixel of a volume, or a window by the place of its result.
struct Place {
    int64_t image, plane, row, column;
};

// The place with this number in row-major order; a depth of one costs no division.
DIOPI_HD inline Place place_of(int64_t number, int64_t depth, int64_t rows, int64_t columns) {
    const int64_t line = number / columns, plane = line / rows;
    const int64_t image = depth == 1 ? plane : plane / depth;
    return {image, plane - image * depth, line - plane * rows, number - line * columns};
}

// Calls f(window, tap) for each window that contains the pixel, with the numbers of the window and of its tap, in
// order.
template <class F>
DIOPI_HD inline void for_covering_windows(const VolumeWindows& windows, const Place& pixel, F&& f) {
    const Window &depth = windows.depth, &rows = windows.rows, &columns = windows.columns;
    const Range planes = depth.covering(pixel.plane), vertical = rows.covering(pixel.row),
                horizontal = columns.covering(pixel.column);
    for (int64_t oz = planes.begin; oz < planes.end; ++oz) {
        const int64_t kz = depth.place(oz, pixel.plane);
        if (kz < 0) continue;
        for (int64_t oy = vertical.begin; oy < vertical.end; ++oy) {
            const int64_t ky = rows.place(oy, pixel.row);
            if (ky < 0) continue;
            const int64_t line = ((pixel.image * depth.output + oz) * rows.output + oy) * columns.output;
            const int64_t tap_line = (kz * rows.kernel + ky) * columns.kernel;
            for (int64_t ox = horizontal.begin; ox < horizontal.end; ++ox) {
                const int64_t kx = columns.place(ox, pixel.column);
                if (kx >= 0) f(line + ox, tap_line + kx);
            }
        }
    }
}

struct ConvolutionShape {
    VolumeWindows windows;
    int64_t batch, channels, filters, groups;

    int64_t group_channels() const { return channels / groups; }
    int64_t group_filters() const { return filters / groups; }
    int64_t taps() const { return windows.depth.kernel * windows.rows.kernel * windows.columns.kernel; }
    int64_t row_length() const { return taps() * group_channels(); }  // of the matrix of windows
    int64_t input_pixels() const { return windows.depth.input * windows.rows.input * windows.columns.input; }
    int64_t output_pixels() const { return windows.depth.output * windows.rows.output * windows.columns.output; }
    int64_t images_at_once() const {
        const int64_t one = std::max<int64_t>(1, output_pixels() * row_length());
        return std::max<int64_t>(1, std::min(batch, kColumnElements / one));
    }

    // One input channel per group: there is no sum over channels that a matrix product could do.
    bool depthwise() const { return groups > 1 && groups == channels; }

    // The windows are the pixels themselves: the input is its own matrix of windows.
    bool pointwise() const {
        const auto plain = [](const Window& w) { return w.kernel == 1 && w.stride == 1 && w.padding == 0; };
        return plain(windows.depth) && plain(windows.rows) && plain(windows.columns);
    }
};

}  // namespace diopi::kernels
