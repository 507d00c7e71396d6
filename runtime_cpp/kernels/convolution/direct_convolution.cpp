// Convolutions of planes and their gradients as sums of shifted planes. The gradient of the input is such a convolution
// too, of the gradients that came in: one for each place that an input element may have within a stride.
#include "direct_convolution.h"

#include <algorithm>
#include <vector>

#include "core/tensor.h"
#include "core/workspace.h"
#include "shifted_products.h"
#include "spread_planes.h"

#if !defined(__CUDACC__)  // a GPU has matrix units instead, and a library for them

namespace diopi::kernels {
namespace {

constexpr int64_t kSumElements = int64_t{1} << 18;  // of spread planes at a time: they stay in a cache
constexpr int64_t kDotElements = int64_t{1} << 22;  // the more, the fewer partial sums

int64_t reach_of(const Window& w) { return (w.kernel - 1) * w.dilation; }

int64_t tiles_of(int64_t filters) { return (filters + kFiltersAtOnce - 1) / kFiltersAtOnce; }

int64_t images_at_once(int64_t images, int64_t elements, int64_t most) {
    return std::clamp<int64_t>(most / std::max<int64_t>(elements, 1), 1, std::max<int64_t>(images, 1));
}

// The input as the windows see it.
SpreadAxis input_axis(const Window& w) {
    return {w.input, w.padding, w.stride, std::min(w.stride, reach_of(w) + 1), w.output + reach_of(w) / w.stride};
}

template <class T>
SpreadLayout input_layout(const ConvolutionShape& shape) {
    return {input_axis(shape.windows.rows), input_axis(shape.windows.columns), kVectorsAtOnce * kLanes<T>};
}

// The incoming gradients as the input's elements see them; the first element sees windows `before` the first one.
struct GradientAxis {
    Window window;

    int64_t before() const { return reach_of(window) / window.stride - window.padding / window.stride; }
    SpreadAxis spread() const {
        const int64_t last = (window.input - 1 + window.padding) / window.stride;
        return {window.output, before(), 1, 1, before() + last + 1};
    }
    // Input positions x with (x + padding) % stride == phase.
    int64_t first_step(int64_t phase) const {
        return window.padding <= phase ? 0 : (window.padding - phase + window.stride - 1) / window.stride;
    }
    int64_t position(int64_t phase) const { return first_step(phase) * window.stride + phase - window.padding; }
    int64_t count(int64_t phase) const {
        const int64_t behind = window.input - position(phase);
        return behind <= 0 ? 0 : (behind + window.stride - 1) / window.stride;
    }
    // Where the tap that sees the earliest windows begins.
    int64_t first(int64_t phase) const { return before() + first_step(phase); }
};

ShiftedTaps all_taps(const VolumeWindows& windows, const SpreadLayout& layout) {
    ShiftedTaps taps;
    for (int64_t z = 0; z < windows.depth.kernel; ++z) {
        for (int64_t y = 0; y < windows.rows.kernel; ++y) {
            for (int64_t x = 0; x < windows.columns.kernel; ++x, ++taps.count) {
                const int64_t shift = layout.shift(y * windows.rows.dilation, x * windows.columns.dilation);
                taps.shifts[taps.count] = static_cast<int32_t>(z * windows.depth.dilation * layout.plane_size + shift);
                taps.places[taps.count] = taps.count;
            }
        }
    }
    return taps;
}

// The taps that put an input element of these phases into a window; each reaches a window further back.
ShiftedTaps taps_of_phase(const VolumeWindows& windows, const SpreadLayout& layout, int64_t row_phase,
                          int64_t column_phase) {
    const Window &depth = windows.depth, &rows = windows.rows, &columns = windows.columns;
    ShiftedTaps taps;
    for (int64_t z = 0; z < depth.kernel; ++z) {
        for (int64_t y = 0; y < rows.kernel; ++y) {
            if (y * rows.dilation % rows.stride != row_phase) continue;
            for (int64_t x = 0; x < columns.kernel; ++x) {
                if (x * columns.dilation % columns.stride != column_phase) continue;
                const int64_t back = z * depth.dilation * layout.plane_size +
                                     y * rows.dilation / rows.stride * layout.pitch +
                                     x * columns.dilation / columns.stride;
                taps.shifts[taps.count] = static_cast<int32_t>(-back);
                taps.places[taps.count++] = static_cast<int32_t>((z * rows.kernel + y) * columns.kernel + x);
            }
        }
    }
    return taps;
}

// Spreads [images, planes] and, behind each `filled` of them, `empty` planes of zeros.
template <class T>
void spread(Context ctx, const SpreadLayout& layout, const T* source, T* target, int64_t groups, int64_t filled,
            int64_t empty) {
    for_each(ctx, groups * (filled + empty), SpreadTask<T>{layout, source, target, filled, empty});
}

// Of some lines, as many as may be summed up at once.
template <class T>
void set_blocks(ShiftedSums<T>& sums) {
    const bool whole = sums.pitch <= kMostLine;
    sums.block_columns = whole ? std::max<int64_t>(sums.columns, 1) : kMostLine;
    sums.block_rows = whole ? kMostLine / sums.pitch : 1;
}

// The filters of one phase, packed, and the sums over them; `filters` is how many results there are in a group.
template <class T>
T* packed_filters(Context ctx, const ConvolutionShape& shape, const T* weight, const ShiftedTaps& taps,
                  bool of_inputs) {
    const int64_t outputs = shape.group_filters(), inputs = shape.group_channels(), all = shape.taps();
    PackFilters<T> task{};
    task.weight = weight;
    task.filters = of_inputs ? inputs : outputs;
    task.channels = of_inputs ? outputs : inputs;
    task.tiles = tiles_of(task.filters);
    task.group_stride = outputs * inputs * all;
    task.filter_stride = of_inputs ? all : inputs * all;
    task.channel_stride = of_inputs ? inputs * all : all;
    task.taps = taps;
    const int64_t count = shape.groups * task.tiles;
    task.packed = workspace_of<T>(ctx, count * task.channels * taps.count * kFiltersAtOnce);
    for_each(ctx, count, task);
    return task.packed;
}

template <class T>
ShiftedSums<T> sums_of(const ConvolutionShape& shape, const SpreadLayout& layout, const T* planes, bool of_inputs,
                       bool adds) {
    ShiftedSums<T> sums{};
    sums.planes = planes;
    sums.groups = shape.groups;
    sums.filters = of_inputs ? shape.group_channels() : shape.group_filters();
    sums.channels = of_inputs ? shape.group_filters() : shape.group_channels();
    sums.tiles = tiles_of(sums.filters);
    sums.channel_size = layout.plane_size;
    sums.pitch = layout.pitch;
    sums.adds = adds;
    return sums;
}

}  // namespace

bool has_direct_convolution(const ConvolutionShape& shape) {
    const Window &depth = shape.windows.depth, &rows = shape.windows.rows, &columns = shape.windows.columns;
    const bool few_taps = shape.taps() <= kMostTaps;
    // the gradients of the input are seen from a window before the first
    const auto padded_within = [](const Window& w) { return w.padding / w.stride <= reach_of(w) / w.stride; };
    const bool wide = shape.group_channels() > 1 && shape.group_filters() > 1;
    const int64_t reach = (reach_of(depth) + 1) * input_layout<float>(shape).plane_size;
    return depth.stride == 1 && few_taps && wide && !shape.pointwise() && padded_within(rows) &&
           padded_within(columns) && reach < (int64_t{1} << 31);
}

template <class T>
void direct_convolution(Context ctx, const ConvolutionShape& shape, T* output, const T* input, const T* weight,
                        bool adds) {
    const VolumeWindows& windows = shape.windows;
    const SpreadLayout layout = input_layout<T>(shape);
    // planes of zeros lie before all others, and behind those of each channel, where they are before those of the next
    const int64_t filled = windows.depth.input, empty = windows.depth.padding;
    const int64_t image = shape.channels * (filled + empty) * layout.plane_size;
    const int64_t step = images_at_once(shape.batch, image, kSumElements);
    T* const planes = workspace_of<T>(ctx, empty * layout.plane_size + step * image);
    spread<T>(ctx, layout, nullptr, planes, 1, 0, empty);
    ShiftedSums<T> sums = sums_of(shape, layout, planes, false, adds);
    sums.channel_size = (filled + empty) * layout.plane_size;
    sums.taps = all_taps(windows, layout);
    sums.packed = packed_filters(ctx, shape, weight, sums.taps, false);
    sums.rows = windows.rows.output;
    sums.columns = windows.columns.output;
    sums.column_stride = 1;
    sums.row_stride = sums.columns;
    sums.filter_stride = shape.output_pixels();
    sums.image_stride = shape.filters * sums.filter_stride;
    set_blocks(sums);
    for (int64_t first = 0; first < shape.batch; first += step) {
        const int64_t images = std::min(step, shape.batch - first);
        spread<T>(ctx, layout, input + first * shape.channels * shape.input_pixels(),
                  planes + empty * layout.plane_size, images * shape.channels, filled, empty);
        for (int64_t z = 0; z < windows.depth.output; ++z) {
            sums.first = z * windows.depth.stride * layout.plane_size;
            sums.out = output + first * sums.image_stride + z * sums.rows * sums.columns;
            for_each(ctx, sums.indices(images), sums);
        }
    }
}

template <class T>
void direct_backward_input(Context ctx, const ConvolutionShape& shape, T* grad_input, const T* grad_output,
                           const T* weight, bool adds) {
    const VolumeWindows& windows = shape.windows;
    const GradientAxis rows{windows.rows}, columns{windows.columns};
    const SpreadLayout layout(rows.spread(), columns.spread(), kVectorsAtOnce * kLanes<T>);
    const int64_t filled = windows.depth.output;
    const int64_t empty = std::max<int64_t>(reach_of(windows.depth) - windows.depth.padding, 0);
    const int64_t image = shape.filters * (filled + empty) * layout.plane_size;
    const int64_t step = images_at_once(shape.batch, image, kSumElements);
    T* const planes = workspace_of<T>(ctx, empty * layout.plane_size + step * image);
    spread<T>(ctx, layout, nullptr, planes, 1, 0, empty);
    std::vector<ShiftedSums<T>> phases;
    for (int64_t y = 0; y < windows.rows.stride; ++y) {
        for (int64_t x = 0; x < windows.columns.stride; ++x) {
            ShiftedSums<T> sums = sums_of(shape, layout, planes, true, adds);
            sums.rows = rows.count(y);
            sums.columns = columns.count(x);
            if (sums.rows == 0 || sums.columns == 0) continue;
            sums.channel_size = (filled + empty) * layout.plane_size;
            sums.taps = taps_of_phase(windows, layout, y, x);
            if (sums.taps.count == 0 && adds) continue;
            sums.packed = packed_filters(ctx, shape, weight, sums.taps, true);
            sums.first =
                (empty + windows.depth.padding) * layout.plane_size + rows.first(y) * layout.pitch + columns.first(x);
            sums.column_stride = windows.columns.stride;
            sums.row_stride = windows.rows.stride * windows.columns.input;
            sums.filter_stride = shape.input_pixels();
            sums.image_stride = shape.channels * sums.filter_stride;
            sums.out = grad_input + rows.position(y) * windows.columns.input + columns.position(x);
            set_blocks(sums);
            phases.push_back(sums);
        }
    }
    for (int64_t first = 0; first < shape.batch; first += step) {
        const int64_t images = std::min(step, shape.batch - first);
        spread<T>(ctx, layout, grad_output + first * shape.filters * shape.output_pixels(),
                  planes + empty * layout.plane_size, images * shape.filters, filled, empty);
        for (const ShiftedSums<T>& phase : phases) {
            for (int64_t z = 0; z < windows.depth.input; ++z) {
                ShiftedSums<T> sums = phase;
                sums.first += z * layout.plane_size;
                sums.out += first * sums.image_stride + z * windows.rows.input * windows.columns.input;
                for_each(ctx, sums.indices(images), sums);
            }
        }
    }
}

template <class T>
void direct_backward_weight(Context ctx, const ConvolutionShape& shape, T* grad_weight, const T* grad_output,
                            const T* input) {
    const VolumeWindows& windows = shape.windows;
    const SpreadLayout layout = input_layout<T>(shape);
    const int64_t tiles = tiles_of(shape.group_filters()), filled = shape.group_filters();
    // lines as far apart as those of the input, so that one element behind the other meets the same element there
    const SpreadAxis lines{windows.rows.output, 0, 1, 1, windows.rows.output};
    SpreadLayout grad_layout(lines, {windows.columns.output, 0, 1, 1, layout.pitch}, 0);
    const int64_t image = shape.channels * layout.plane_size;
    const int64_t grad_image = shape.groups * tiles * kFiltersAtOnce * grad_layout.plane_size;
    const int64_t step = images_at_once(shape.batch, image + grad_image, kDotElements);
    ShiftedDots<T> dots{};
    T* const planes = workspace_of<T>(ctx, step * image);
    T* const grads = workspace_of<T>(ctx, step * grad_image);
    dots.planes = planes;
    dots.grads = grads;
    dots.grad_weight = grad_weight;
    dots.groups = shape.groups;
    dots.tiles = tiles;
    dots.filters = filled;
    dots.channels = shape.group_channels();
    dots.plane_size = layout.plane_size;
    dots.grad_size = grad_layout.plane_size;
    dots.taps = all_taps(windows, layout);
    for (int64_t first = 0; first < shape.batch; first += step) {
        dots.images = std::min(step, shape.batch - first);
        dots.adds = first > 0;
        spread<T>(ctx, layout, input + first * shape.channels * shape.input_pixels(), planes, 1,
                  dots.images * shape.channels, 0);
        spread<T>(ctx, grad_layout, grad_output + first * shape.filters * shape.output_pixels(), grads,
                  dots.images * shape.groups, filled, tiles * kFiltersAtOnce - filled);
        for_each(ctx, dots.indices(), dots);
    }
}

#define DIOPI_DIRECT_CONVOLUTION(T)                                                                         \
    template void direct_convolution<T>(Context, const ConvolutionShape&, T*, const T*, const T*, bool);    \
    template void direct_backward_input<T>(Context, const ConvolutionShape&, T*, const T*, const T*, bool); \
    template void direct_backward_weight<T>(Context, const ConvolutionShape&, T*, const T*, const T*);
DIOPI_DIRECT_CONVOLUTION(float)
DIOPI_DIRECT_CONVOLUTION(double)
#undef DIOPI_DIRECT_CONVOLUTION

}  // namespace diopi::kernels

#endif  // !defined(__CUDACC__)
