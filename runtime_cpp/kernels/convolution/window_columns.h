// The matrix of windows that slide over a volume evenly; for ColumnProducts.
#pragma once

#include "column_products.h"
#include "convolution_shape.h"
#include "space/runs.h"

namespace diopi::kernels {

struct WindowColumns {
    bool direct(const ConvolutionShape& shape) const { return shape.pointwise(); }

    // columns[(n, z, y, x), (kz, ky, kx, c)] = input[n, z * stride + kz ..., y * stride + ky ..., x * stride + kx ...,
    // first_channel + c], zero outside. One plane of a window at a time: where neither taps nor channels are spread
    // out, a row of it is one run of the input.
    template <class T>
    void unroll(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* input,
                T* columns) const {
        const Window depth = shape.windows.depth, rows = shape.windows.rows, cols = shape.windows.columns;
        const int64_t channels = shape.channels, width = shape.group_channels(), first_channel = part.first_channel;
        const int64_t tap_step = cols.dilation * channels, length = cols.kernel * width;
        for_runs(
            stream, part.windows * depth.kernel, rows.kernel * length,
            DIOPI_LAMBDA(int64_t i, int64_t begin, int64_t end) {
                const int64_t window = i / depth.kernel;
                const Place o = place_of(window, depth.output, rows.output, cols.output);
                const int64_t z = depth.start(o.plane) + (i - window * depth.kernel) * depth.dilation;
                const int64_t x = cols.start(o.column);
                T* target = columns + i * rows.kernel * length;
                const bool whole = tap_step == width && x >= 0 && x + cols.kernel <= cols.input;
                for (int64_t j = begin; j < end;) {
                    const int64_t ky = j / length, y = rows.start(o.row) + ky * rows.dilation;
                    const int64_t tap = whole ? 0 : (j - ky * length) / width;
                    const int64_t here = x + tap * cols.dilation;
                    const int64_t last = ky * length + (whole ? length : (tap + 1) * width);
                    const int64_t stop = last < end ? last : end;
                    if (z < 0 || z >= depth.input || y < 0 || y >= rows.input || here < 0 || here >= cols.input) {
                        for (; j < stop; ++j) target[j] = T(0);
                    } else {
                        const int64_t pixel = ((o.image * depth.input + z) * rows.input + y) * cols.input + here;
                        const T* source = input + pixel * channels + first_channel - ky * length - tap * width;
                        for (; j < stop; ++j) target[j] = source[j];
                    }
                }
            });
    }

    // Each input pixel sums up its places in all windows, so that no two writes meet.
    template <class T>
    void roll_up(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* columns,
                 T* grad_input, bool adds) const {
        const VolumeWindows windows = shape.windows;
        const int64_t channels = shape.channels, width = shape.group_channels(), first_channel = part.first_channel;
        const int64_t taps = shape.taps();
        for_runs(
            stream, part.images * shape.input_pixels(), width, DIOPI_LAMBDA(int64_t pixel, int64_t begin, int64_t end) {
                const Place p = place_of(pixel, windows.depth.input, windows.rows.input, windows.columns.input);
                T* target = grad_input + pixel * channels + first_channel;
                if (!adds) {
                    for (int64_t c = begin; c < end; ++c) target[c] = T(0);
                }
                for_covering_windows(windows, p, [&](int64_t window, int64_t tap) {
                    const T* source = columns + (window * taps + tap) * width;
                    for (int64_t c = begin; c < end; ++c) target[c] += source[c];
                });
            });
    }
};

}  // namespace diopi::kernels
