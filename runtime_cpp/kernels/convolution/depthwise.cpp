// Depthwise convolution, with the filters turned so that one tap of all channels is a run of memory.
#include "depthwise.h"

#include <algorithm>

#include "copy/copy.h"
#include "core/team.h"
#include "core/view.h"
#include "core/workspace.h"
#include "linear_algebra/matrix.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

// [filters, taps] as [taps, filters]; the same memory order for a gradient that is turned back.
TensorView by_tap(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, const void* weight) {
    const int64_t sizes[] = {shape.filters, shape.taps()};
    const TensorView filters = dense_view(const_cast<void*>(weight), dtype, sizes, 2);
    return contiguous_as(ctx, transposed(filters, 0, 1), dtype);
}

// Calls f(add), where add(o, term) adds to sums[o], for the run [begin, end) of `sums`: of one element in a register.
template <class S, class F>
DIOPI_HD_INLINED void sum_up(S* sums, int64_t begin, int64_t end, bool adds, F&& f) {
    if constexpr (kRunLength == 1) {
        S sum = adds ? sums[begin] : S(0);
        f([&](int64_t, S term) { sum += term; });
        sums[begin] = sum;
    } else {
        if (!adds) {
            for (int64_t o = begin; o < end; ++o) sums[o] = S(0);
        }
        f([&](int64_t o, S term) { sums[o] += term; });
    }
}

// Adds values[o / multiplier] * factors[o] to each.
template <class S, class T, class Add>
DIOPI_HD_INLINED void add_products(const T* values, const T* factors, int64_t multiplier, int64_t begin, int64_t end,
                                   Add&& add) {
    if (multiplier == 1) {
        for (int64_t o = begin; o < end; ++o) add(o, static_cast<S>(values[o]) * static_cast<S>(factors[o]));
    } else {
        for (int64_t o = begin; o < end; ++o)
            add(o, static_cast<S>(values[o / multiplier]) * static_cast<S>(factors[o]));
    }
}

template <class T>
void forward(diopiStreamHandle_t stream, const ConvolutionShape& shape, T* output, const T* input, const T* taps,
             bool adds) {
    const Window depth = shape.windows.depth, rows = shape.windows.rows, columns = shape.windows.columns;
    const int64_t channels = shape.channels, filters = shape.filters, multiplier = filters / channels;
    for_runs(
        stream, shape.batch * shape.output_pixels(), filters, DIOPI_LAMBDA(int64_t window, int64_t begin, int64_t end) {
            const Place o = place_of(window, depth.output, rows.output, columns.output);
            const Range dz = depth.inside(o.plane), dy = rows.inside(o.row), dx = columns.inside(o.column);
            sum_up(output + window * filters, begin, end, adds, [&](auto&& add) {
                for (int64_t kz = dz.begin; kz < dz.end; ++kz) {
                    const int64_t z = o.image * depth.input + depth.start(o.plane) + kz * depth.dilation;
                    for (int64_t ky = dy.begin; ky < dy.end; ++ky) {
                        const int64_t line = (z * rows.input + rows.start(o.row) + ky * rows.dilation) * columns.input;
                        const T* line_taps = taps + (kz * rows.kernel + ky) * columns.kernel * filters;
                        for (int64_t kx = dx.begin; kx < dx.end; ++kx) {
                            const int64_t pixel = line + columns.start(o.column) + kx * columns.dilation;
                            add_products<T>(input + pixel * channels, line_taps + kx * filters, multiplier, begin, end,
                                            add);
                        }
                    }
                }
            });
        });
}

// Each input pixel sums up its places in all windows, so that no two writes meet.
template <class T>
void backward_input(diopiStreamHandle_t stream, const ConvolutionShape& shape, T* grad_input, const T* grad_output,
                    const T* taps, bool adds) {
    const VolumeWindows windows = shape.windows;
    const Window depth = windows.depth, rows = windows.rows, columns = windows.columns;
    const int64_t channels = shape.channels, filters = shape.filters, multiplier = filters / channels;
    for_runs(
        stream, shape.batch * shape.input_pixels(), channels, DIOPI_LAMBDA(int64_t pixel, int64_t begin, int64_t end) {
            const Place p = place_of(pixel, depth.input, rows.input, columns.input);
            sum_up(grad_input + pixel * channels, begin, end, adds, [&](auto&& add) {
                for_covering_windows(windows, p, [&](int64_t window, int64_t tap) {
                    const T *const grads = grad_output + window * filters, *const factors = taps + tap * filters;
                    for (int64_t c = begin; c < end; ++c) {
                        for (int64_t o = c * multiplier; o < (c + 1) * multiplier; ++o) add(c, grads[o] * factors[o]);
                    }
                });
            });
        });
}

constexpr int kMostShared = 7;  // taps, of as many neighbouring windows

// Whether a thread of a GPU makes the gradient of the weight for all taps of a line, which share what they read.
bool shares_taps(const ConvolutionShape& shape) {
    const Window& columns = shape.windows.columns;
    return kRunLength == 1 && shape.filters == shape.channels && columns.stride == 1 && columns.dilation == 1 &&
           columns.kernel > 3 && columns.kernel <= kMostShared;
}

// Calls f(pixel, output) with the first elements of each line of outputs whose windows' tap has a line of the input, but
// for those of other parts than the tap's.
template <class F>
DIOPI_HD_INLINED void for_lines_of(const VolumeWindows& windows, int64_t batch, const Place& tap, int64_t parts,
                                   F&& f) {
    const Window &depth = windows.depth, &rows = windows.rows;
    for (int64_t line = tap.image; line < batch * depth.output * rows.output; line += parts) {
        const Place o = place_of(line, depth.output, rows.output, 1);
        const int64_t z = depth.start(o.plane) + tap.plane * depth.dilation;
        const int64_t y = rows.start(o.row) + tap.row * rows.dilation;
        if (z < 0 || z >= depth.input || y < 0 || y >= rows.input) continue;
        f(((o.image * depth.input + z) * rows.input + y) * windows.columns.input, line * windows.columns.output);
    }
}

// Into how many parts the windows of a tap fall: threads of a GPU would be few, and each would have thousands.
int64_t weight_parts(const ConvolutionShape& shape) {
    constexpr int64_t busy = 1 << 18;
    const int64_t lines = shape.batch * shape.windows.depth.output * shape.windows.rows.output;
    const int64_t together = shares_taps(shape) ? shape.windows.columns.kernel : 1;
    const int64_t each = std::max<int64_t>(shape.taps() / together * shape.filters, 1);
    return Team::kAlone ? 1 : std::max<int64_t>(std::min(lines, busy / each), 1);
}

// The sums below by all taps and neighbouring windows of a line in one thread, which share what they read.
template <class T>
void share_lines(diopiStreamHandle_t stream, const ConvolutionShape& shape, int64_t parts, double* sums_by_tap,
                 const T* grad_output, const T* input) {
    const VolumeWindows windows = shape.windows;
    const int64_t batch = shape.batch;
    const int kernel = windows.columns.kernel, width = windows.columns.input, length = windows.columns.output;
    const int channels = shape.channels, padding = windows.columns.padding;
    for_runs(
        stream, parts * windows.depth.kernel * windows.rows.kernel, channels,
        DIOPI_LAMBDA(int64_t number, int64_t c, int64_t) {
            const Place tap = place_of(number, windows.depth.kernel, windows.rows.kernel, 1);
            double sums[kMostShared] = {};
            for_lines_of(windows, batch, tap, parts, [&](int64_t pixel, int64_t output) {
                const T* pixels = input + pixel * channels + c;
                const T* grads = grad_output + output * channels + c;
                for (int x = 0; x < length; x += kMostShared) {
                    T seen[2 * kMostShared - 1], strip[kMostShared] = {};
                    DIOPI_UNROLL
                    for (int k = 0; k < 2 * kMostShared - 1; ++k) {
                        const int place = x - padding + k;
                        seen[k] = static_cast<unsigned>(place) < static_cast<unsigned>(width) ? pixels[place * channels]
                                                                                              : T(0);
                    }
                    DIOPI_UNROLL
                    for (int w = 0; w < kMostShared; ++w) {
                        if (x + w >= length) break;
                        const T grad = grads[(x + w) * channels];
                        DIOPI_UNROLL
                        for (int k = 0; k < kMostShared; ++k) strip[k] += seen[w + k] * grad;
                    }
                    DIOPI_UNROLL
                    for (int k = 0; k < kMostShared; ++k) sums[k] += strip[k];
                }
            });
            DIOPI_UNROLL
            for (int k = 0; k < kMostShared; ++k)
                if (k < kernel) sums_by_tap[(number * kernel + k) * channels + c] = sums[k];
        });
}

// A tap sums over all windows of the batch: in double, because there may be very many. [parts, taps, filters]
template <class T>
void backward_weight(diopiStreamHandle_t stream, const ConvolutionShape& shape, int64_t parts, double* sums_by_tap,
                     const T* grad_output, const T* input) {
    if (shares_taps(shape)) return share_lines(stream, shape, parts, sums_by_tap, grad_output, input);
    const VolumeWindows windows = shape.windows;
    const Window columns = windows.columns;
    const int64_t channels = shape.channels, filters = shape.filters, multiplier = filters / channels,
                  batch = shape.batch, taps = shape.taps();
    for_runs(
        stream, parts * taps, filters, DIOPI_LAMBDA(int64_t number, int64_t begin, int64_t end) {
            const Place tap = place_of(number, windows.depth.kernel, windows.rows.kernel, columns.kernel);
            sum_up(sums_by_tap + number * filters, begin, end, false, [&](auto&& add) {
                for_lines_of(windows, batch, tap, parts, [&](int64_t pixel, int64_t output) {
                    for (int64_t ox = 0; ox < columns.output; ++ox) {
                        const int64_t x = columns.start(ox) + tap.column * columns.dilation;
                        if (x < 0 || x >= columns.input) continue;
                        add_products<double>(input + (pixel + x) * channels, grad_output + (output + ox) * filters,
                                             multiplier, begin, end, add);
                    }
                });
            });
        });
}

using Computed = Types<float, double>;

// Calls f(result, operand, taps) with their elements.
template <class F>
void with_taps(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* result, const void* operand,
               const void* weight, F&& f) {
    const TensorView taps = by_tap(ctx, shape, dtype, weight);
    dispatch<Computed>(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        f(static_cast<T*>(result), static_cast<const T*>(operand), static_cast<const T*>(taps.data));
    });
}

}  // namespace

void depthwise(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* output, const void* input,
               const void* weight, bool adds) {
    with_taps(ctx, shape, dtype, output, input, weight,
              [&](auto* out, auto* in, auto* taps) { forward(stream_of(ctx), shape, out, in, taps, adds); });
}

void depthwise_backward_input(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* grad_input,
                              const void* grad_output, const void* weight, bool adds) {
    with_taps(ctx, shape, dtype, grad_input, grad_output, weight,
              [&](auto* out, auto* in, auto* taps) { backward_input(stream_of(ctx), shape, out, in, taps, adds); });
}

void depthwise_backward_weight(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* grad_weight,
                               const void* grad_output, const void* input) {
    const int64_t parts = weight_parts(shape), sizes[] = {parts, shape.taps() * shape.filters};
    const TensorView sums = temporary(ctx, sizes, 2, diopi_dtype_float64);
    dispatch<Computed>(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        backward_weight(stream_of(ctx), shape, parts, sums.as<double>(), static_cast<const T*>(grad_output),
                        static_cast<const T*>(input));
    });
    const int64_t filters[] = {shape.filters, shape.taps()};
    const TensorView total = parts == 1 ? sums : temporary(ctx, &sizes[1], 1, diopi_dtype_float64);
    if (parts != 1) sum_around(ctx, total, sums, 1);
    const TensorView by_filter = transposed(dense_view(grad_weight, dtype, filters, 2), 0, 1);
    copy_elements(ctx, by_filter, dense_view(total.data, diopi_dtype_float64, by_filter.sizes, 2));
}

}  // namespace diopi::kernels
