// No two calls add to the same place, so that results do not depend on the order of the work.
#include "pooling.h"

#include <limits>

#include "copy.h"
#include "sums.h"
#include "team.h"
#include "view.h"

namespace diopi::kernels {
namespace {

// What no element is below.
template <class C>
constexpr C kLowest =
    std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();

// Where a result is alone, so many of its elements are worked on side by side.
constexpr int64_t kTaps = kWidth < 32 ? kWidth : 32;

// Calls f(from, to) until what lanes [0, lanes) hold is joined in the lanes [0, width).
template <class F>
DIOPI_HD inline void join_lanes(int64_t lanes, int64_t width, F&& f) {
    for (int64_t half = lanes / 2; half >= width; half /= 2) {
        for (int64_t c = 0; c < half; ++c) f(half + c, c);
    }
}

// Two axes that every window covers as a whole are one.
void join_whole_axes(Areas& areas, Volume& large) {
    for (int axis = first_axis(areas.rank); axis + 1 < kAxes; ++axis) {
        Window &outer = areas.axes[axis], &inner = areas.axes[axis + 1];
        const bool whole = outer.kernel == large.sizes[axis] && inner.kernel == large.sizes[axis + 1] &&
                           outer.padding + inner.padding == 0 && outer.output == 1 && inner.output == 1;
        if (!whole || large.steps[axis] != large.steps[axis + 1] * inner.kernel) continue;
        large.sizes[axis + 1] *= large.sizes[axis];
        large.sizes[axis] = 1;
        inner = window_of(large.sizes[axis + 1], 1, large.sizes[axis + 1], large.sizes[axis + 1], 0, 1);
        outer = window_of(1, 1, 1, 1, 0, 1);
    }
}

// NaN wins, the last one as in torch; where nothing is larger than the lowest, the first does.
template <class C>
DIOPI_HD inline void see(C value, int32_t tap, C& best, int32_t& best_tap) {
    const bool larger = (value > best) | (value != value) | (best_tap < 0);
    best = larger ? value : best;
    best_tap = larger ? tap : best_tap;
}

template <class T, class I>
void max_pool(diopiStreamHandle_t stream, const TensorView& out, const TensorView& indices, const TensorView& input,
              Areas areas) {
    using C = ComputeType<T>;
    const Volume to = volume_of(out, areas.rank, "out");
    Volume from = volume_of(input, areas.rank, "input");
    join_whole_axes(areas, from);
    const Volume places = indices ? volume_of(indices, areas.rank, "indices") : Volume{};
    T* target = out.as<T>();
    I* target_index = indices ? indices.as<I>() : nullptr;
    const T* source = input.as<T>();
    for_each_strip(stream, to, from.channels_last(), areas.columns_at_once(), DIOPI_LAMBDA(const Strip& s) {
        const int64_t left = areas.axes[2].start(s.first.x), shift = s.columns == 1 ? 0 : areas.axes[2].stride;
        const int64_t step = s.columns == 1 ? from.channel : shift * from.steps[2], width = s.width();
        const int64_t lanes = width == 1 ? kTaps : width;
        const Span columns = areas.area(2, s.first.x);
        C best[kWidth];
        int32_t taps[kWidth];  // in 32 bits, so that a vector of them is as wide as one of floats
        for_each_line(to, s, [&](int64_t oz, int64_t oy) {
            const Span depth = areas.area(0, oz), rows = areas.area(1, oy);
            const int64_t corner = from.number(depth.begin, rows.begin, left);
            for (int64_t c = 0; c < lanes; ++c) {
                best[c] = kLowest<C>;
                taps[c] = -1;
            }
            for_each_line(depth, rows, [&](int64_t z, int64_t y) {
                const T* line = source + from.at(s, z, y, 0);
                const auto tap = static_cast<int32_t>(from.number(z, y, 0) - corner);
                if (width == 1) {
                    areas.for_each_run(columns, lanes, [&](int64_t x, int64_t count) {
                        const auto first = static_cast<int32_t>(tap + x), apart = static_cast<int32_t>(columns.step);
                        for_each_lane(0, count, columns.step * from.steps[2], [&](int64_t c, int64_t at) {
                            see(cast<C>(line[x * from.steps[2] + at]), first + static_cast<int32_t>(c) * apart,
                                best[c], taps[c]);
                        });
                    });
                } else {
                    areas.for_each_tap(s, [&](int64_t x, const Range& inside) {
                        const T* values = line + x * from.steps[2];
                        const auto here = static_cast<int32_t>(tap + x);
                        for_each_lane(inside.begin, inside.end, step,
                                      [&](int64_t c, int64_t at) { see(cast<C>(values[at]), here, best[c], taps[c]); });
                    });
                }
            });
            join_lanes(lanes, width, [&](int64_t c, int64_t into) {
                const bool sooner = taps[c] < taps[into], number = best[into] == best[into];
                const bool larger = (best[c] > best[into]) | ((best[c] == best[into]) & sooner) |
                                    ((best[c] != best[c]) & (number | !sooner)) | (taps[into] < 0);
                const bool wins = larger & (taps[c] >= 0);
                best[into] = wins ? best[c] : best[into];
                taps[into] = wins ? taps[c] : taps[into];
            });
            T* results = target + to.at(s, oz, oy);
            for_each_lane(0, width, to.step(s), [&](int64_t c, int64_t at) { results[at] = cast<T>(best[c]); });
            if (target_index == nullptr) return;
            I* winners = target_index + places.at(s, oz, oy);
            for_each_lane(0, width, places.step(s),
                          [&](int64_t c, int64_t at) { winners[at] = static_cast<I>(corner + c * shift + taps[c]); });
        });
    });
}

template <class T>
DIOPI_HD inline void add_to(T& sum, T value) {
    sum = static_cast<T>(sum + value);
}

// The elements of one channel, or the channels of one image where they are neighbours, walk their windows in order: no
// other call adds to the same volumes, so that sums do not depend on timing. grad_input is zero before.
template <class T, class I>
void add_up(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
            const TensorView& indices, int rank) {
    const Volume to = volume_of(grad_input, rank, "grad_input"), from = volume_of(grad_output, rank, "grad_output");
    const Volume places = volume_of(indices, rank, "indices");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const I* winners = indices.as<I>();
    const bool even = to.even();  // an index is then one multiplication away from its place
    const bool together = to.channels_last(), joined = from.even() && places.even();
    const int64_t lines = joined ? 1 : from.sizes[0] * from.sizes[1];
    const int64_t columns = joined ? from.positions() : from.sizes[2];
    const int64_t lane = together ? to.channel : 0, step = together ? from.channel : from.steps[2];
    const int64_t place_step = together ? places.channel : places.steps[2];
    for_runs(stream, to.batch, to.channels, DIOPI_LAMBDA(int64_t image, int64_t begin, int64_t end) {
        const int64_t channels = together ? end - begin : 1, count = together ? columns : 1;
        const int64_t width = together ? channels : columns;
        for (int64_t channel = begin; channel < end; channel += channels) {
            T* sums = target + image * to.image + channel * to.channel;
            for_each_line(from, Strip{{image, 0, 0, 0}, channel, channels, 1, lines}, [&](int64_t oz, int64_t oy) {
                for (int64_t ox = 0; ox < count; ++ox) {
                    const T* values = source + from.at(image, oz, oy, ox) + channel * from.channel;
                    const I* chosen = winners + places.at(image, oz, oy, ox) + channel * places.channel;
                    if (even) {
                        const int64_t scale = to.steps[2];
                        for (int64_t c = 0; c < width; ++c)
                            add_to(sums[chosen[c * place_step] * scale + c * lane], values[c * step]);
                    } else {
                        for (int64_t c = 0; c < width; ++c)
                            add_to(sums[to.at(to.voxel(chosen[c * place_step])) + c * lane], values[c * step]);
                    }
                }
            });
        }
    });
}

// So many lines and columns of a gradient look into windows together: neighbours lie in nearly the same ones.
constexpr int64_t kPatch = 2;

// On a GPU elements look for themselves in the windows that may cover them, and add in the same order.
template <class T, class I>
void look_up(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
             const TensorView& indices, Areas areas) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(grad_input, areas.rank, "grad_input");
    const Volume from = volume_of(grad_output, areas.rank, "grad_output");
    const Volume places = volume_of(indices, areas.rank, "indices");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const I* winners = indices.as<I>();
    Volume patches = to;
    for (int axis : {1, 2}) patches.sizes[axis] = (to.sizes[axis] + kPatch - 1) / kPatch;
    for_each_strip(stream, patches, to.channels_last(), 1, DIOPI_LAMBDA(const Strip& s) {
        const int64_t z = s.first.z, y = s.first.y * kPatch, x = s.first.x * kPatch;
        const int64_t bottom = y + 1 < to.sizes[1] ? y + 1 : y, right = x + 1 < to.sizes[2] ? x + 1 : x;
        const I own = static_cast<I>(to.number(z, y, x)), line = static_cast<I>(to.sizes[2]);
        const Range depth = areas.covering(0, z);
        const Span rows{areas.covering(1, y).begin, areas.covering(1, bottom).end};
        const Span columns{areas.covering(2, x).begin, areas.covering(2, right).end};
        A sums[kPatch][kPatch] = {};
        for_each_line(Span{depth.begin, depth.end}, rows, [&](int64_t oz, int64_t oy) {
            const I* const chosen = winners + places.at(s, oz, oy, 0);
            const T* const values = source + from.at(s, oz, oy, 0);
            for (int64_t ox = columns.begin; ox < columns.end; ++ox) {
                const I ahead = chosen[ox * places.steps[2]] - own;
                const A value = cast<A>(values[ox * from.steps[2]]);
                for (int64_t r = 0; r < kPatch; ++r)
                    for (int64_t c = 0; c < kPatch; ++c)
                        if (ahead == static_cast<I>(r) * line + static_cast<I>(c)) sums[r][c] += value;
            }
        });
        for (int64_t r = y; r <= bottom; ++r)
            for (int64_t c = x; c <= right; ++c) target[to.at(s, z, r, c)] = cast<T>(sums[r - y][c - x]);
    });
}

template <class T>
void average(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, Areas areas,
             const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, areas.rank, "out");
    Volume from = volume_of(input, areas.rank, "input");
    join_whole_axes(areas, from);
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_strip(stream, to, from.channels_last(), areas.columns_at_once(), DIOPI_LAMBDA(const Strip& s) {
        A sums[kWidth], lengths[kWidth];
        const int64_t width = s.width(), lanes = width == 1 ? kTaps : width;
        const int64_t step = s.columns == 1 ? from.channel : areas.axes[2].stride * from.steps[2];
        const Span columns = areas.area(2, s.first.x);
        divisor.lengths(areas, s, lengths);
        for_each_line(to, s, [&](int64_t oz, int64_t oy) {
            for (int64_t c = 0; c < lanes; ++c) sums[c] = kNothing<A>;
            for_each_line(areas.area(0, oz), areas.area(1, oy), [&](int64_t z, int64_t y) {
                const T* line = source + from.at(s, z, y, 0);
                const auto add = [&](int64_t x, int64_t begin, int64_t end, int64_t apart) {
                    const T* values = line + x * from.steps[2];
                    for_each_lane(begin, end, apart, [&](int64_t c, int64_t at) { sums[c] += cast<A>(values[at]); });
                };
                if (width == 1) {
                    areas.for_each_run(columns, lanes, [&](int64_t x, int64_t n) { add(x, 0, n, from.steps[2]); });
                } else {
                    areas.for_each_tap(s, [&](int64_t x, const Range& in) { add(x, in.begin, in.end, step); });
                }
            });
            join_lanes(lanes, width, [&](int64_t c, int64_t into) { sums[into] += sums[c]; });
            T* results = target + to.at(s, oz, oy);
            const A height = divisor.template height<A>(areas, oz, oy);
            for_each_lane(0, width, to.step(s),
                          [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c] / (height * lengths[c])); });
        });
    });
}

template <class T>
void average_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                      Areas areas, const Divisor& divisor) {
    using A = AccumulateType<T>;
    Volume to = volume_of(grad_input, areas.rank, "grad_input");
    const Volume from = volume_of(grad_output, areas.rank, "grad_output");
    join_whole_axes(areas, to);
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    for_each_strip(stream, to, to.channels_last(), areas.columns_covered(), DIOPI_LAMBDA(const Strip& s) {
        A sums[kWidth], parts[kWidth], lengths[kWidth];
        const int64_t left = s.first.x, width = s.width();
        const int64_t first = areas.covering(2, left).begin, end = areas.covering(2, left + s.columns - 1).end;
        const Strip windows{{s.first.image, 0, 0, first}, s.channel, s.channels, s.columns == 1 ? 1 : end - first, 1};
        divisor.lengths(areas, windows, lengths);
        Range depth{0, 0}, rows{0, 0};
        for_each_line(to, s, [&](int64_t z, int64_t y) {
            T* results = target + to.at(s, z, y);
            const Range next_depth = areas.covering(0, z), next_rows = areas.covering(1, y);
            const bool again = depth == next_depth && rows == next_rows;  // the sums of the line before
            depth = next_depth;
            rows = next_rows;
            for (int64_t c = 0; !again && c < width; ++c) sums[c] = A(0);
            const Span slices{depth.begin, again ? depth.begin : depth.end};
            for_each_line(slices, Span{rows.begin, rows.end}, [&](int64_t oz, int64_t oy) {
                const T* values = source + from.at(windows, oz, oy);
                const A height = divisor.template height<A>(areas, oz, oy);
                if (s.columns == 1) {
                    for (int64_t ox = first; ox < end; ++ox, values += from.steps[2]) {
                        const A count = height * static_cast<A>(divisor.length(areas, 2, ox));
                        for_each_lane(0, width, from.channel,
                                      [&](int64_t c, int64_t at) { sums[c] += cast<A>(values[at]) / count; });
                    }
                } else {
                    for_each_lane(0, windows.columns, from.steps[2], [&](int64_t c, int64_t at) {
                        parts[c] = cast<A>(values[at]) / (height * lengths[c]);
                    });
                    areas.spread(windows, parts, left, s.columns, sums);
                }
            });
            for_each_lane(0, width, to.step(s), [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c]); });
        });
    });
}

// Windows of one position in each dimension, also in those that the tensors lack.
Areas areas_of(const TensorView& input, const TensorView& output, int rank) {
    const Volume from = volume_of(input, rank, "input"), to = volume_of(output, rank, "output");
    require_same_channels(from, to);
    Areas areas{rank, {}};
    for (int axis = 0; axis < kAxes; ++axis) areas.axes[axis] = window_of(from.sizes[axis], to.sizes[axis], 1, 1, 0, 1);
    return areas;
}

}  // namespace

Areas adaptive_areas(const TensorView& input, const TensorView& output, int rank) {
    Areas areas = areas_of(input, output, rank);
    require(input.numel > 0 || output.numel == 0, "an adaptive pooling has no elements to choose from");
    for (Window& w : areas.axes) {
        w.kernel = w.stride = w.output > 0 && w.input % w.output == 0 ? w.input / w.output : 0;
        w.by_stride = Divider(w.stride);
    }
    return areas;
}

Areas sliding_areas(const TensorView& input, const TensorView& output, int rank, const Sliding& lists) {
    Areas areas = areas_of(input, output, rank);
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
                           const TensorView& indices, const Areas& areas) {
    using Summed = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t>;
    using Target = std::conditional_t<Team::kAlone, Summed, Number>;
    require_same_sizes(grad_output, indices, "grad_output", "indices");
    const auto fill = [&](const TensorView& sums) {
        const TensorView values = converted(ctx, grad_output, sums.dtype);
        if (Team::kAlone) fill_zero(ctx, sums);
        dispatch<Target>(sums.dtype, [&](auto type) {
            dispatch<Index>(indices.dtype, [&](auto index) {
                using T = typename decltype(type)::type;
                using I = typename decltype(index)::type;
                if constexpr (Team::kAlone) {
                    add_up<T, I>(stream_of(ctx), sums, values, indices, areas.rank);
                } else {
                    look_up<T, I>(stream_of(ctx), sums, values, indices, areas);
                }
            });
        });
    };
    if (Team::kAlone) {
        summed_up(ctx, grad_input, fill);
    } else {
        fill(grad_input);
    }
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
