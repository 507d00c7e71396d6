// The matrix of windows whose taps are moved by offsets and read between the pixels; for ColumnProducts.
#pragma once

#include "column_products.h"
#include "convolution_shape.h"
#include "space/bilinear.h"
#include "space/runs.h"

namespace diopi::kernels {

// Where the taps of all windows of a batch of planes read. The channels fall into `parts`, each with offsets of its
// own.
template <class T>
struct Deformation {
    Window rows, columns;
    int64_t taps, parts, part_channels;
    const T* offsets;  // [windows, parts, taps, 2], y before x
    const T* masks;    // [windows, parts, taps]; null where every tap counts in full

    DIOPI_HD int64_t number(int64_t window, int64_t part, int64_t tap) const {
        return (window * parts + part) * taps + tap;
    }
    DIOPI_HD T factor(int64_t window, int64_t part, int64_t tap) const {
        return masks == nullptr ? T(1) : masks[number(window, part, tap)];
    }

    // Calls f(pixel, PixelShare) for the pixels that a tap reads, numbered within the batch.
    template <class F>
    DIOPI_HD void for_each_pixel(int64_t window, int64_t part, int64_t tap, F&& f) const {
        const Place o = place_of(window, 1, rows.output, columns.output);
        const T* offset = offsets + 2 * number(window, part, tap);
        const int64_t ky = tap / columns.kernel, kx = tap - ky * columns.kernel;
        const ImagePoint point{static_cast<double>(rows.start(o.row) + ky * rows.dilation) + offset[0],
                               static_cast<double>(columns.start(o.column) + kx * columns.dilation) + offset[1]};
        for_each_pixel_around(point, rows.input, columns.input, [&](int64_t y, int64_t x, const PixelShare& share) {
            f((o.image * rows.input + y) * columns.input + x, share);
        });
    }

    // Calls f(part, from, to) for the channels [begin, end) of a group, which begins with `first_channel`.
    template <class F>
    DIOPI_HD void for_each_part(int64_t first_channel, int64_t begin, int64_t end, F&& f) const {
        while (begin < end) {
            const int64_t part = (first_channel + begin) / part_channels;
            const int64_t stop = (part + 1) * part_channels - first_channel;
            f(part, begin, stop < end ? stop : end);
            begin = stop;
        }
    }
};

// The gradients that go with grad_input; the last two are null where they are not wanted.
template <class T>
struct DeformedColumns {
    Deformation<T> deformation;
    const T* input = nullptr;   // of the whole batch
    T* grad_offsets = nullptr;  // as the offsets lie; zeros at first, because each group of channels adds to them
    T* grad_masks = nullptr;

    bool direct(const ConvolutionShape&) const { return false; }

    void unroll(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* images,
                T* columns) const {
        const Deformation<T> moved = deformation;
        const int64_t first_window = part.first_image * shape.output_pixels(), first_channel = part.first_channel;
        const int64_t channels = shape.channels, width = shape.group_channels();
        const T* pixels = images + first_channel - part.first_image * shape.input_pixels() * channels;
        for_runs(
            stream, part.windows * moved.taps, width, DIOPI_LAMBDA(int64_t row, int64_t begin, int64_t end) {
                const int64_t window = row / moved.taps, tap = row - window * moved.taps;
                T* target = columns + row * width;
                for (int64_t c = begin; c < end; ++c) target[c] = T(0);
                moved.for_each_part(first_channel, begin, end, [&](int64_t piece, int64_t from, int64_t to) {
                    const T factor = moved.factor(first_window + window, piece, tap);
                    moved.for_each_pixel(first_window + window, piece, tap,
                                         [&](int64_t pixel, const PixelShare& share) {
                                             const T weight = static_cast<T>(share.value) * factor;
                                             const T* source = pixels + pixel * channels;
                                             for (int64_t c = from; c < to; ++c) target[c] += weight * source[c];
                                         });
                });
            });
    }

    void roll_up(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* columns,
                 T* grad_images, bool adds) const {
        spread(stream, shape, part, columns, grad_images, adds);
        if (grad_offsets != nullptr || grad_masks != nullptr) derive(stream, shape, part, columns);
    }

    // The channels of one image walk its windows in order: any of them may add to any pixel.
    void spread(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* columns,
                T* grad_images, bool adds) const {
        const Deformation<T> moved = deformation;
        const int64_t first_image = part.first_image, first_channel = part.first_channel;
        const int64_t windows = shape.output_pixels(), pixels = shape.input_pixels();
        const int64_t channels = shape.channels, width = shape.group_channels();
        T* grads = grad_images + first_channel - first_image * pixels * channels;
        for_runs(
            stream, part.images, width, DIOPI_LAMBDA(int64_t number, int64_t begin, int64_t end) {
                const int64_t image = first_image + number;
                for (int64_t pixel = image * pixels; !adds && pixel < (image + 1) * pixels; ++pixel) {
                    for (int64_t c = begin; c < end; ++c) grads[pixel * channels + c] = T(0);
                }
                for (int64_t row = number * windows * moved.taps; row < (number + 1) * windows * moved.taps; ++row) {
                    const int64_t window = row / moved.taps, tap = row - window * moved.taps;
                    const T* source = columns + row * width;
                    moved.for_each_part(first_channel, begin, end, [&](int64_t piece, int64_t from, int64_t to) {
                        const int64_t place = first_image * windows + window;
                        const T factor = moved.factor(place, piece, tap);
                        moved.for_each_pixel(place, piece, tap, [&](int64_t pixel, const PixelShare& share) {
                            const T weight = static_cast<T>(share.value) * factor;
                            for (int64_t c = from; c < to; ++c) grads[pixel * channels + c] += weight * source[c];
                        });
                    });
                }
            });
    }

    // Adds what the channels of one group say of the offsets and masks.
    void derive(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* columns) const {
        const Deformation<T> moved = deformation;
        T *to_offsets = grad_offsets, *to_masks = grad_masks;
        const int64_t first_window = part.first_image * shape.output_pixels(), first_channel = part.first_channel;
        const int64_t channels = shape.channels, width = shape.group_channels();
        const T* pixels = input + first_channel;
        for_each_index(
            stream, part.windows * moved.taps, DIOPI_LAMBDA(int64_t row) {
                const int64_t window = row / moved.taps, tap = row - window * moved.taps;
                const T* grads = columns + row * width;
                moved.for_each_part(first_channel, 0, width, [&](int64_t piece, int64_t from, int64_t to) {
                    PixelShare sums{0, 0, 0};
                    moved.for_each_pixel(first_window + window, piece, tap,
                                         [&](int64_t pixel, const PixelShare& share) {
                                             const T* source = pixels + pixel * channels;
                                             double product = 0;
                                             for (int64_t c = from; c < to; ++c)
                                                 product += static_cast<double>(grads[c]) * source[c];
                                             sums.value += share.value * product;
                                             sums.along_y += share.along_y * product;
                                             sums.along_x += share.along_x * product;
                                         });
                    const int64_t at = moved.number(first_window + window, piece, tap);
                    const T factor = moved.factor(first_window + window, piece, tap);
                    if (to_masks != nullptr) to_masks[at] += static_cast<T>(sums.value);
                    if (to_offsets == nullptr) return;
                    to_offsets[2 * at] += static_cast<T>(sums.along_y) * factor;
                    to_offsets[2 * at + 1] += static_cast<T>(sums.along_x) * factor;
                });
            });
    }
};

}  // namespace diopi::kernels
