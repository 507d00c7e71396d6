// No two calls add to the same place, so that results do not depend on the order of the work.
#include "pooling.h"

#include <limits>

#include "copy.h"
#include "sums.h"
#include "view.h"

namespace diopi::kernels {
namespace {

// Nothing is smaller.
template <class C>
constexpr C kLowest =
    std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();

template <class T, class I>
void max_pool(diopiStreamHandle_t stream, const TensorView& out, const TensorView& indices, const TensorView& input,
              const Areas& areas) {
    using C = ComputeType<T>;
    const Volume to = volume_of(out, areas.rank, "out"), from = volume_of(input, areas.rank, "input");
    const Volume places = indices ? volume_of(indices, areas.rank, "indices") : Volume{};
    T* target = out.as<T>();
    I* target_index = indices ? indices.as<I>() : nullptr;
    const T* source = input.as<T>();
    for_each_block(stream, to, DIOPI_LAMBDA(const Voxel& o, int64_t first, int64_t width) {
        const Span depth = areas.area(0, o.z), rows = areas.area(1, o.y), columns = areas.area(2, o.x);
        const int64_t corner = from.number(depth.begin, rows.begin, columns.begin);
        C best[kWidth];
        int32_t taps[kWidth];  // in 32 bits, so that a vector of them is as wide as one of floats
        for (int64_t c = 0; c < width; ++c) {
            best[c] = kLowest<C>;
            taps[c] = 0;
        }
        for_each_line(depth, rows, [&](int64_t z, int64_t y) {
            const T* line = source + from.at(o.image, z, y, 0) + first * from.channel;
            for (int64_t x = columns.begin; x < columns.end; x += columns.step) {
                const T* values = line + x * from.steps[2];
                const auto tap = static_cast<int32_t>(from.number(z, y, x) - corner);
                for_each_channel(width, from.channel, [&](int64_t c, int64_t at) {
                    const C value = cast<C>(values[at]);
                    const bool larger = (value > best[c]) | (value != value);  // NaN wins, the last one as in torch
                    best[c] = larger ? value : best[c];
                    taps[c] = larger ? tap : taps[c];
                });
            }
        });
        T* results = target + to.at(o) + first * to.channel;
        for_each_channel(width, to.channel, [&](int64_t c, int64_t at) { results[at] = cast<T>(best[c]); });
        if (target_index == nullptr) return;
        I* winners = target_index + places.at(o) + first * places.channel;
        for_each_channel(width, places.channel,
                         [&](int64_t c, int64_t at) { winners[at] = static_cast<I>(corner + taps[c]); });
    });
}

// The channels of one image walk their windows in order: no other call adds to the same volumes, so that sums do not
// depend on timing. grad_input is zero before.
template <class T, class I>
void max_pool_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                       const TensorView& indices, int rank) {
    const Volume to = volume_of(grad_input, rank, "grad_input"), from = volume_of(grad_output, rank, "grad_output");
    const Volume places = volume_of(indices, rank, "indices");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const I* winners = indices.as<I>();
    // An index is then one multiplication away from its place.
    const bool even = to.steps[1] == to.steps[2] * to.sizes[2] &&
                      (to.sizes[0] == 1 || to.steps[0] == to.steps[1] * to.sizes[1]);
    for_runs(stream, to.batch, to.channels, DIOPI_LAMBDA(int64_t image, int64_t begin, int64_t end) {
        T* volumes = target + image * to.image;
        for_each_line(Span{0, from.sizes[0]}, Span{0, from.sizes[1]}, [&](int64_t oz, int64_t oy) {
            for (int64_t ox = 0; ox < from.sizes[2]; ++ox) {
                const T* values = source + from.at(image, oz, oy, ox);
                const I* chosen = winners + places.at(image, oz, oy, ox);
                for (int64_t c = begin; c < end; ++c) {
                    const int64_t place = chosen[c * places.channel];
                    const int64_t at = even ? place * to.steps[2] : to.at(to.voxel(place));
                    T& sum = volumes[at + c * to.channel];
                    sum = static_cast<T>(sum + values[c * from.channel]);
                }
            }
        });
    });
}

// What an average is divided by is the product of the lengths of its axes.
DIOPI_HD inline int64_t length_along(const Divisor& divisor, const Areas& areas, int axis, int64_t o) {
    if (divisor.fixed != 0) return axis == 0 ? divisor.fixed : 1;
    if (divisor.count_padding) return areas.padded_length(axis, o);
    const Span area = areas.area(axis, o);
    return area.end - area.begin;
}

template <class T>
void average(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Areas& areas,
             const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, areas.rank, "out"), from = volume_of(input, areas.rank, "input");
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_block(stream, to, DIOPI_LAMBDA(const Voxel& o, int64_t first, int64_t width) {
        A sums[kWidth];
        for (int64_t c = 0; c < width; ++c) sums[c] = kNothing<A>;
        const Span columns = areas.area(2, o.x);
        for_each_line(areas.area(0, o.z), areas.area(1, o.y), [&](int64_t z, int64_t y) {
            const T* line = source + from.at(o.image, z, y, 0) + first * from.channel;
            for (int64_t x = columns.begin; x < columns.end; ++x) {
                const T* values = line + x * from.steps[2];
                for_each_channel(width, from.channel, [&](int64_t c, int64_t at) { sums[c] += cast<A>(values[at]); });
            }
        });
        const auto count = static_cast<A>(length_along(divisor, areas, 0, o.z) * length_along(divisor, areas, 1, o.y) *
                                          length_along(divisor, areas, 2, o.x));
        T* results = target + to.at(o) + first * to.channel;
        for_each_channel(width, to.channel, [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c] / count); });
    });
}

template <class T>
void average_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                      const Areas& areas, const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(grad_input, areas.rank, "grad_input");
    const Volume from = volume_of(grad_output, areas.rank, "grad_output");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    for_each_block(stream, to, DIOPI_LAMBDA(const Voxel& p, int64_t first, int64_t width) {
        A sums[kWidth];
        for (int64_t c = 0; c < width; ++c) sums[c] = kNothing<A>;
        const Span columns = areas.covering(2, p.x);
        for_each_line(areas.covering(0, p.z), areas.covering(1, p.y), [&](int64_t oz, int64_t oy) {
            const T* line = source + from.at(p.image, oz, oy, 0) + first * from.channel;
            const int64_t height = length_along(divisor, areas, 0, oz) * length_along(divisor, areas, 1, oy);
            for (int64_t ox = columns.begin; ox < columns.end; ++ox) {
                const T* values = line + ox * from.steps[2];
                const auto count = static_cast<A>(height * length_along(divisor, areas, 2, ox));
                for_each_channel(width, from.channel,
                                 [&](int64_t c, int64_t at) { sums[c] += cast<A>(values[at]) / count; });
            }
        });
        T* results = target + to.at(p) + first * to.channel;
        for_each_channel(width, to.channel, [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c] + A(0)); });
    });
}

// The areas with their sizes, and windows of one position in dimensions that the tensors lack.
Areas areas_of(const TensorView& input, const TensorView& output, int rank, bool adaptive) {
    const Volume from = volume_of(input, rank, "input"), to = volume_of(output, rank, "output");
    require_same_channels(from, to);
    Areas areas{rank, adaptive, {}};
    for (int axis = 0; axis < kAxes; ++axis) areas.axes[axis] = {from.sizes[axis], to.sizes[axis], 1, 1, 0, 1};
    return areas;
}

}  // namespace

Areas adaptive_areas(const TensorView& input, const TensorView& output, int rank) {
    const Areas areas = areas_of(input, output, rank, true);
    require(input.numel > 0 || output.numel == 0, "an adaptive pooling has no elements to choose from");
    return areas;
}

Areas sliding_areas(const TensorView& input, const TensorView& output, int rank, const Sliding& lists) {
    Areas areas = areas_of(input, output, rank, false);
    for (int axis = first_axis(rank); axis < kAxes; ++axis) {
        const int64_t size = value_for(lists.kernel, axis, rank, 1, "kernel_size");
        areas.axes[axis] = window_of(areas.axes[axis].input, areas.axes[axis].output, size,
                                     value_for(lists.stride, axis, rank, size, "stride"),
                                     value_for(lists.padding, axis, rank, 0, "padding"),
                                     value_for(lists.dilation, axis, rank, 1, "dilation"));
    }
    return areas;
}

void pool_maximum(Context ctx, const TensorView& out, const TensorView& indices, const TensorView& input,
                  const Areas& areas) {
    if (indices) require_same_sizes(out, indices, "out", "indices");
    const int64_t reach = (areas.longest(0) * areas.axes[1].input + areas.longest(1)) * areas.axes[2].input;
    require(reach <= std::numeric_limits<int32_t>::max() - areas.longest(2), "a window spans too many elements");
    dispatch<Number>(out.dtype, [&](auto type) {
        dispatch<Index>(indices ? indices.dtype : diopi_dtype_int64, [&](auto index) {
            max_pool<typename decltype(type)::type, typename decltype(index)::type>(stream_of(ctx), out, indices, input,
                                                                                    areas);
        });
    });
}

void pool_maximum_backward(Context ctx, const TensorView& grad_input, const TensorView& grad_output,
                           const TensorView& indices, int rank) {
    using Summed = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t>;
    require_same_sizes(grad_output, indices, "grad_output", "indices");
    require_same_channels(volume_of(grad_input, rank, "grad_input"), volume_of(grad_output, rank, "grad_output"));
    summed_up(ctx, grad_input, [&](const TensorView& sums) {
        const TensorView values = converted(ctx, grad_output, sums.dtype);
        fill_zero(ctx, sums);
        dispatch<Summed>(sums.dtype, [&](auto type) {
            dispatch<Index>(indices.dtype, [&](auto index) {
                max_pool_backward<typename decltype(type)::type, typename decltype(index)::type>(
                    stream_of(ctx), sums, values, indices, rank);
            });
        });
    });
}

void pool_average(Context ctx, const TensorView& out, const TensorView& input, const Areas& areas,
                  const Divisor& divisor) {
    dispatch<Number>(out.dtype, [&](auto type) {
        average<typename decltype(type)::type>(stream_of(ctx), out, input, areas, divisor);
    });
}

void pool_average_backward(Context ctx, const TensorView& grad_input, const TensorView& grad_output, const Areas& areas,
                           const Divisor& divisor) {
    dispatch<Number>(grad_input.dtype, [&](auto type) {
        average_backward<typename decltype(type)::type>(stream_of(ctx), grad_input, grad_output, areas, divisor);
    });
}

}  // namespace diopi::kernels
