// The maxima of windows, and their gradients: no two calls add to the same place, so that results do not depend on the
// order of the work.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "copy/common_dtype.h"
#include "core/team.h"
#include "core/view.h"
#include "pooling_lanes.h"
#include "space/packed_rows.h"

namespace diopi::kernels {
namespace {

// What no element is below.
template <class C>
constexpr C kLowest =
    std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();

// The tap of what has seen nothing: behind all others, also when columns are added.
constexpr int32_t kUnseen = std::numeric_limits<int32_t>::max() / 2;

// The largest elements that lanes have seen, and where: NaN wins, the last one as in torch; of equal ones the first does.
template <class C, int n = kWidth>
struct Largest {
    C best[n];
    int32_t taps[n];  // in 32 bits, so that a vector of them is as wide as one of floats

    DIOPI_HD void start(int64_t lanes) {
        for (int64_t c = 0; c < lanes; ++c) {
            best[c] = kLowest<C>;
            taps[c] = kUnseen;
        }
    }
    // What comes after all that the lane has seen.
    DIOPI_HD void see(int64_t lane, C value, int32_t tap) {
        const bool larger = (value > best[lane]) | (value != value) | (taps[lane] == kUnseen);
        best[lane] = larger ? value : best[lane];
        taps[lane] = larger ? tap : taps[lane];
    }
    // What another lane has seen, before or after.
    DIOPI_HD void join(int64_t lane, C value, int32_t tap) {
        const C held = best[lane];
        const int32_t at = taps[lane];
        const bool larger =
            (value > held) | ((value == held) & (tap < at)) | ((value != value) & ((held == held) | (tap > at)));
        best[lane] = larger ? value : held;
        taps[lane] = larger ? tap : at;
    }
};

// Puts every `stride`th value side by side: those from place p on become the p-th of `stride` runs, `apart` values each.
template <class V>
DIOPI_HD inline void part(const V* values, int64_t stride, int64_t apart, V* runs) {
    if (stride == 2) {  // a loop of whole pairs, which vectorizes
        for (int64_t k = 0; k < apart; ++k) {
            runs[k] = values[2 * k];
            runs[apart + k] = values[2 * k + 1];
        }
        return;
    }
    for (int64_t p = 0; p < stride; ++p)
        for (int64_t k = 0; k < apart; ++k) runs[p * apart + k] = values[k * stride + p];
}

// The columns that a strip's windows see in each line of the input, in memory side by side, and the windows' lanes.
template <class T, class C>
struct Columns {
    const Areas& areas;
    const Volume& from;
    const T* source;
    const Strip& strip;

    // Compares each column from above to below, then all windows at once along their columns; those outside of the
    // input have seen nothing. Taps are counted from `corner` on, which is in the first column.
    DIOPI_HD void see(const Span& depth, const Span& rows, int64_t corner, Largest<C>& windows) const {
        const Window& w = areas.axes[2];
        const int64_t left = w.start(strip.first.x), end = areas.columns_end(strip),
                      apart = (end - left) / w.stride + 1;
        const int64_t begin = left < 0 ? 0 : left, count = (end < w.input ? end : w.input) - begin;
        Largest<C> columns, runs;
        columns.start(apart * w.stride);
        for_each_line(depth, rows, [&](int64_t z, int64_t y) {
            const T* line = source + from.at(strip, z, y, begin);
            const auto tap = static_cast<int32_t>(from.number(z, y, left) - corner);
            for (int64_t c = 0; c < count; ++c) columns.see(c + begin - left, cast<C>(line[c]), tap);
        });
        if (w.stride > 1) {
            part(columns.best, w.stride, apart, runs.best);
            part(columns.taps, w.stride, apart, runs.taps);
        }
        const Largest<C>& seen = w.stride > 1 ? runs : columns;
        for (int64_t x = 0; x < w.kernel * w.dilation; x += w.dilation) {
            const int64_t first = x / w.stride, run = (x - first * w.stride) * apart + first;
            for (int64_t c = 0; c < strip.columns; ++c) {
                const auto column = static_cast<int32_t>(x + c * w.stride);
                windows.join(c, seen.best[run + c], seen.taps[run + c] + column);
            }
        }
    }
};

// The volume with packs in place of channels, which an access of each of the tensors has side by side.
template <class T>
bool has_packs(const TensorView& tensor, const Volume& volume) {
    const auto is_whole = [](int64_t step) { return step % kRowPack<T> == 0; };
    return volume.channels_last() && is_whole(volume.channels) && is_whole(volume.image) &&
           std::all_of(volume.steps, volume.steps + kAxes, is_whole) &&
           reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0;
}

// Calls f(strip) on the device for each pack of the volume, which begins at the strip's channel.
template <class T, class F>
void for_each_pack(diopiStreamHandle_t stream, Volume volume, F f) {
    volume.channels /= kRowPack<T>;
    for_each_strip(
        stream, volume, true, 1, DIOPI_LAMBDA(Strip pack) {
            pack.channel *= kRowPack<T>;
            f(pack);
        });
}

// The same with what task(n) gives for n neighbouring channels, a constant: of packs if there are any, or one.
template <class T, class F>
void for_packs_or_elements(diopiStreamHandle_t stream, const Volume& volume, bool packs, F&& task) {
    if (packs) {
        for_each_pack<T>(stream, volume, task(std::integral_constant<int, kRowPack<T>>{}));
    } else {
        for_each_strip(stream, volume, volume.channels_last(), 1, task(std::integral_constant<int, 1>{}));
    }
}

// Of `n` neighbouring channels.
template <class T, int n>
struct MaxPoolTask {
    using C = ComputeType<T>;

    T* target;
    int64_t* winners;  // or null
    const T* source;
    Volume to, places, from;
    Areas areas;

    DIOPI_HD void operator()(const Strip& s) const {
        const Span depth = areas.area(0, s.first.z), rows = areas.area(1, s.first.y);
        const Span columns = areas.area(2, s.first.x);
        const int64_t corner = from.number(depth.begin, rows.begin, columns.begin);
        Largest<C, n> largest;
        largest.start(n);
        for_each_line(depth, rows, [&](int64_t z, int64_t y) {
            const T* const line = source + from.at(s, z, y, 0);
            const auto tap = static_cast<int32_t>(from.number(z, y, 0) - corner);
            for (int64_t x = columns.begin; x < columns.end; x += columns.step) {
                const auto values = load_pack<T, n>(line + x * from.steps[2]);
                DIOPI_UNROLL
                for (int k = 0; k < n; ++k) largest.see(k, cast<C>(values.at[k]), tap + static_cast<int32_t>(x));
            }
        });
        Pack<T, n> results;
        Pack<int64_t, n> chosen;
        DIOPI_UNROLL
        for (int k = 0; k < n; ++k) {
            results.at[k] = cast<T>(largest.best[k]);
            chosen.at[k] = corner + largest.taps[k];
        }
        store_pack<T, n>(target + to.at(s, s.first.z, s.first.y), results);
        if (winners != nullptr) store_pack<int64_t, n>(winners + places.at(s, s.first.z, s.first.y), chosen);
    }
};

// On a host, whose calls work on many windows side by side.
template <class T>
void max_pool_strips(diopiStreamHandle_t stream, T* target, int64_t* target_index, const T* source, const Volume& to,
                     const Volume& places, const Volume& from, const Areas& areas) {
    using C = ComputeType<T>;
    const bool by_columns = from.steps[2] == 1 && !from.channels_last() && areas.share_columns();
    const int64_t most = by_columns ? areas.windows_within(kWidth) : areas.columns_at_once();
    for_each_strip(
        stream, to, from.channels_last(), most, DIOPI_LAMBDA(const Strip& s) {
            const int64_t width = s.width(), lanes = width == 1 ? kTaps : width;
            const bool shared = kWidth > 1 && by_columns && s.columns > 1;
            const int64_t left = areas.axes[2].start(s.first.x);
            const int64_t shift = s.columns == 1 || shared ? 0 : areas.axes[2].stride;
            const int64_t step = s.columns == 1 ? from.channel : areas.axes[2].stride * from.steps[2];
            const Span columns = areas.area(2, s.first.x);
            Largest<C> largest;
            for_each_line(to, s, [&](int64_t oz, int64_t oy) {
                const Span depth = areas.area(0, oz), rows = areas.area(1, oy);
                const int64_t corner = from.number(depth.begin, rows.begin, left);
                largest.start(lanes);
                const auto look = [&](int64_t z, int64_t y) {
                    const T* line = source + from.at(s, z, y, 0);
                    const auto tap = static_cast<int32_t>(from.number(z, y, 0) - corner);
                    if (width == 1) {
                        areas.for_each_run(columns, lanes, [&](int64_t x, int64_t count) {
                            const auto first = static_cast<int32_t>(tap + x),
                                       apart = static_cast<int32_t>(columns.step);
                            for_each_lane(0, count, columns.step * from.steps[2], [&](int64_t c, int64_t at) {
                                largest.see(c, cast<C>(line[x * from.steps[2] + at]),
                                            first + static_cast<int32_t>(c) * apart);
                            });
                        });
                    } else {
                        areas.for_each_tap(s, [&](int64_t x, const Range& inside) {
                            const T* values = line + x * from.steps[2];
                            const auto here = static_cast<int32_t>(tap + x);
                            for_each_lane(inside.begin, inside.end, step,
                                          [&](int64_t c, int64_t at) { largest.see(c, cast<C>(values[at]), here); });
                        });
                    }
                };
                if (shared) {
                    Columns<T, C>{areas, from, source, s}.see(depth, rows, corner, largest);
                } else {
                    for_each_line(depth, rows, look);
                }
                join_lanes(lanes, width,
                           [&](int64_t c, int64_t into) { largest.join(into, largest.best[c], largest.taps[c]); });
                T* results = target + to.at(s, oz, oy);
                for_each_lane(0, width, to.step(s),
                              [&](int64_t c, int64_t at) { results[at] = cast<T>(largest.best[c]); });
                if (target_index == nullptr) return;
                int64_t* winners = target_index + places.at(s, oz, oy);
                for_each_lane(0, width, places.step(s),
                              [&](int64_t c, int64_t at) { winners[at] = corner + c * shift + largest.taps[c]; });
            });
        });
}

template <class T>
void max_pool(diopiStreamHandle_t stream, const TensorView& out, const TensorView& indices, const TensorView& input,
              Areas areas) {
    const Volume to = volume_of(out, areas.rank, "out");
    Volume from = volume_of(input, areas.rank, "input");
    join_whole_axes(areas, from);
    const Volume places = indices ? volume_of(indices, areas.rank, "indices") : Volume{};
    T* const target = out.as<T>();
    const T* const source = input.as<T>();
    int64_t* const winners = indices ? indices.as<int64_t>() : nullptr;
    if constexpr (kRunLength == 1) {
        const bool packs =
            has_packs<T>(out, to) && has_packs<T>(input, from) && (!indices || has_packs<T>(indices, places));
        for_packs_or_elements<T>(stream, to, packs, [&](auto n) {
            return MaxPoolTask<T, decltype(n)::value>{target, winners, source, to, places, from, areas};
        });
    } else {
        max_pool_strips(stream, target, winners, source, to, places, from, areas);
    }
}

template <class T>
DIOPI_HD inline void add_to(T& sum, T value) {
    sum = static_cast<T>(sum + value);
}

// The elements of one channel, or the channels of one image where they are neighbours, walk their windows in order: no
// other call adds to the same volumes, so that sums do not depend on timing. grad_input is zero before.
template <class T>
void add_up(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
            const TensorView& indices, int rank) {
    const Volume to = volume_of(grad_input, rank, "grad_input"), from = volume_of(grad_output, rank, "grad_output");
    const Volume places = volume_of(indices, rank, "indices");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const int64_t* winners = indices.as<int64_t>();
    const bool even = to.even();  // an index is then one multiplication away from its place
    const bool together = to.channels_last(), joined = from.even() && places.even();
    const int64_t lines = joined ? 1 : from.sizes[0] * from.sizes[1];
    const int64_t columns = joined ? from.positions() : from.sizes[2];
    const int64_t lane = together ? to.channel : 0, step = together ? from.channel : from.steps[2];
    const int64_t place_step = together ? places.channel : places.steps[2];
    for_runs(
        stream, to.batch, to.channels, DIOPI_LAMBDA(int64_t image, int64_t begin, int64_t end) {
            const int64_t channels = together ? end - begin : 1, count = together ? columns : 1;
            const int64_t width = together ? channels : columns;
            for (int64_t channel = begin; channel < end; channel += channels) {
                T* sums = target + image * to.image + channel * to.channel;
                for_each_line(from, Strip{{image, 0, 0, 0}, channel, channels, 1, lines}, [&](int64_t oz, int64_t oy) {
                    for (int64_t ox = 0; ox < count; ++ox) {
                        const T* values = source + from.at(image, oz, oy, ox) + channel * from.channel;
                        const int64_t* chosen = winners + places.at(image, oz, oy, ox) + channel * places.channel;
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

// Of `n` neighbouring channels.
template <class T, int n>
struct LookUpTask {
    using A = AccumulateType<T>;

    T* target;
    const T* source;
    const int64_t* winners;
    Volume to, from, places;
    Areas areas;

    DIOPI_HD void operator()(const Strip& s) const {
        const int64_t z = s.first.z, y = s.first.y * kPatch, x = s.first.x * kPatch;
        const int64_t bottom = y + 1 < to.sizes[1] ? y + 1 : y, right = x + 1 < to.sizes[2] ? x + 1 : x;
        const int64_t own = to.number(z, y, x);
        const Range depth = areas.covering(0, z);
        const Span rows{areas.covering(1, y).begin, areas.covering(1, bottom).end};
        const Span columns{areas.covering(2, x).begin, areas.covering(2, right).end};
        A sums[kPatch][kPatch][n] = {};
        for_each_line(Span{depth.begin, depth.end}, rows, [&](int64_t oz, int64_t oy) {
            const int64_t* const line = winners + places.at(s, oz, oy, 0);
            const T* const values = source + from.at(s, oz, oy, 0);
            for (int64_t ox = columns.begin; ox < columns.end; ++ox) {
                const auto chosen = load_pack<int64_t, n>(line + ox * places.steps[2]);
                const auto grads = load_pack<T, n>(values + ox * from.steps[2]);
                DIOPI_UNROLL
                for (int at = 0; at < kPatch * kPatch * n; ++at) {
                    const int r = at / n / kPatch, c = at / n % kPatch, k = at % n;
                    if (chosen.at[k] - own == r * to.sizes[2] + c) sums[r][c][k] += cast<A>(grads.at[k]);
                }
            }
        });
        DIOPI_UNROLL
        for (int r = 0; r < kPatch; ++r) {
            DIOPI_UNROLL
            for (int c = 0; c < kPatch; ++c) {
                if (y + r > bottom || x + c > right) continue;
                Pack<T, n> results;
                DIOPI_UNROLL
                for (int k = 0; k < n; ++k) results.at[k] = cast<T>(sums[r][c][k]);
                store_pack<T, n>(target + to.at(s, z, y + r, x + c), results);
            }
        }
    }
};

// On a GPU elements look for themselves in the windows that may cover them, and add in the same order.
template <class T>
void look_up(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
             const TensorView& indices, const Areas& areas) {
    const Volume to = volume_of(grad_input, areas.rank, "grad_input");
    const Volume from = volume_of(grad_output, areas.rank, "grad_output");
    const Volume places = volume_of(indices, areas.rank, "indices");
    Volume patches = to;
    for (int axis : {1, 2}) patches.sizes[axis] = (to.sizes[axis] + kPatch - 1) / kPatch;
    const bool packs = has_packs<T>(grad_input, to) && has_packs<T>(grad_output, from) && has_packs<T>(indices, places);
    for_packs_or_elements<T>(stream, patches, packs, [&](auto n) {
        return LookUpTask<T, decltype(n)::value>{
            grad_input.as<T>(), grad_output.as<T>(), indices.as<int64_t>(), to, from, places, areas};
    });
}

void maximum(Context ctx, const TensorView& out, const TensorView& indices, const TensorView& input,
             const Areas& areas) {
    const int64_t reach = (areas.longest(0) * areas.axes[1].input + areas.longest(1)) * areas.axes[2].input;
    require(reach <= kUnseen - areas.longest(2), "a window spans too many elements");
    using Pooled = Types<float, double, Half, BFloat16, int64_t>;  // integers are rare
    with_type<Pooled>(ctx, {out, input}, out.dtype, [&](auto type, const TensorView(&typed)[2]) {
        max_pool<typename decltype(type)::type>(stream_of(ctx), typed[0], indices, typed[1], areas);
    });
}

void require_indices(const TensorView& indices, const TensorView& like, const char* name) {
    require_same_sizes(like, indices, name, "indices");
    if (!is_in<Index>(indices.dtype)) fail_dtype(indices.dtype);
}

// Where the maxima stand, for a gradient that was not told.
TensorView found_again(Context ctx, const TensorView& input, const TensorView& like, const Areas& areas) {
    const TensorView indices = temporary_like(ctx, like, diopi_dtype_int64);
    maximum(ctx, temporary_like(ctx, like, input.dtype), indices, input, areas);
    return indices;
}

}  // namespace

diopiError_t pool_maximum(Context ctx, int rank, Tensor out, Tensor indices, ConstTensor input, const Sliding& lists) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), source = required_view(input, "input");
        const Areas areas = areas_of(source, result, rank, lists);
        if (indices != nullptr) require_indices(view(indices), result, "out");
        with_dtype<1>(ctx, {view(indices)}, 1, diopi_dtype_int64, Layout::any,
                      [&](const auto& places) { maximum(ctx, result, places[0], source, areas); });
    });
}

diopiError_t pool_maximum_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                   ConstTensor indices, const Sliding& lists) {
    return guarded([&] {
        const TensorView result = required_view(grad_input, "grad_input");
        const TensorView grads = required_view(grad_output, "grad_output");
        const Areas areas = areas_of(result, grads, rank, lists);
        const TensorView places =
            indices != nullptr ? view(indices) : found_again(ctx, required_view(input, "input"), grads, areas);
        require_indices(places, grads, "grad_output");
        const TensorView winners = converted(ctx, places, diopi_dtype_int64);
        with_wide_type<int64_t>(ctx, {result, grads}, [&](auto type, const TensorView(&typed)[2]) {
            using T = typename decltype(type)::type;
            if constexpr (Team::kAlone) {
                fill_zero(ctx, typed[0]);
                add_up<T>(stream_of(ctx), typed[0], typed[1], winners, rank);
            } else {
                look_up<T>(stream_of(ctx), typed[0], typed[1], winners, areas);
            }
        });
    });
}

}  // namespace diopi::kernels
