// Tensors stretched to other sizes and their gradients, and tensors read at given positions.
#include <diopi/diopirt.h>

#include <cstring>

#include "copy/common_dtype.h"
#include "core/view.h"
#include "interpolation.h"
#include "space/volume.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// One axis of `input` elements that is stretched to `output`; from one of these to the next are `step` of those.
struct Stretch {
    bool align_corners;
    int64_t input, output;
    double step;

    // In float for the nearest element, as torch finds it.
    template <Interpolation kind>
    DIOPI_HD Taps taps(int64_t o) const {
        if (kind == Interpolation::nearest) {
            const auto element = static_cast<int64_t>(math::floor(static_cast<float>(o) * static_cast<float>(step)));
            return {element < input ? element : input - 1, 1, {1, 0, 0, 0}};
        }
        const double place = static_cast<double>(o);
        if (align_corners) return taps_at(kind, place * step);
        const double position = (place + 0.5) * step - 0.5;
        return taps_at(kind, kind == Interpolation::linear && position < 0 ? 0 : position);
    }
    // The border stands for what lies outside.
    DIOPI_HD int64_t inside(int64_t element) const { return element < 0 ? 0 : element < input ? element : input - 1; }
    // How much of input element i is in output element o.
    template <Interpolation kind>
    DIOPI_HD double weight(int64_t o, int64_t i) const {
        const Taps found = taps<kind>(o);
        double sum = 0;
        for (int k = 0; k < found.count; ++k) sum += inside(found.first + k) == i ? found.weights[k] : 0;
        return sum;
    }
    // The first output element whose taps begin at `element` or later: they never go back.
    template <Interpolation kind>
    DIOPI_HD int64_t first_from(int64_t element) const {
        int64_t low = 0, high = output;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (taps<kind>(middle).first < element) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
    // The output elements that hold some of input element i.
    template <Interpolation kind>
    DIOPI_HD Span covering(int64_t i) const {
        return {first_from<kind>(i - tap_count(kind) + 1), first_from<kind>(i + 1)};
    }
};

struct Stretches {
    int rank;
    Stretch axes[kAxes];

    template <Interpolation kind>
    DIOPI_HD Taps taps(int axis, int64_t o) const {
        return axis < first_axis(rank) ? kOneTap : axes[axis].taps<kind>(o);
    }
};

// The elements that take part in one position, and what each of them counts.
template <class A, class T>
struct Mixture {
    static constexpr bool kOneChannel = kWidth == 1;  // added up at once
    static constexpr int kMost =
        kOneChannel ? 1 : kMostTaps * kMostTaps;  // cubic in two dimensions, or linear in three
    const T* source;
    int64_t places[kMost] = {};
    A weights[kMost] = {};  // or the sum
    int count = 0;

    DIOPI_HD explicit Mixture(const T* elements) : source(elements) {}

    DIOPI_HD void add(int64_t place, double weight) {
        if constexpr (kOneChannel) {
            weights[0] += static_cast<A>(weight) * cast<A>(source[place]);
        } else {
            places[count] = place;
            weights[count] = static_cast<A>(weight);
            ++count;
        }
    }
    // For neighbouring channels, or else channel by channel.
    DIOPI_HD void blend(int64_t step, T* target, int64_t target_step, int64_t width) const {
        if constexpr (kOneChannel) {
            *target = cast<T>(weights[0]);
            return;
        }
        if (step != 1) {
            const auto each = [&](auto most) {
                const int taps = decltype(most)::value > 0 ? decltype(most)::value : count;
                for (int64_t c = 0; c < width; ++c) {
                    A sum = 0;
                    for (int k = 0; k < taps; ++k) sum += weights[k] * cast<A>(source[places[k] + c * step]);
                    target[c * target_step] = cast<T>(sum);
                }
            };
            return count == kMost ? each(std::integral_constant<int, kMost>{}) : each(std::integral_constant<int, 0>{});
        }
        A sums[kWidth];
        for (int64_t c = 0; c < width; ++c) sums[c] = kNothing<A>;
        for (int k = 0; k < count; ++k) {
            for (int64_t c = 0; c < width; ++c) sums[c] += weights[k] * cast<A>(source[places[k] + c]);
        }
        for (int64_t c = 0; c < width; ++c) target[c * target_step] = cast<T>(sums[c] + A(0));
    }
};

template <class T, Interpolation kind>
void stretch(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Stretches& stretches) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, stretches.rank, "out"), from = volume_of(input, stretches.rank, "input");
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_block(
        stream, to, DIOPI_LAMBDA(const Voxel& o, int64_t first, int64_t width) {
            const Stretch &depth = stretches.axes[0], &rows = stretches.axes[1], &columns = stretches.axes[2];
            Mixture<A, T> mixture(source + o.image * from.image + first * from.channel);
            for_each_tap(stretches.taps<kind>(0, o.z), stretches.taps<kind>(1, o.y), columns.template taps<kind>(o.x),
                         [&](int64_t z, int64_t y, int64_t x, double weight) {
                             mixture.add(from.at(0, depth.inside(z), rows.inside(y), columns.inside(x)), weight);
                         });
            mixture.blend(from.channel, target + to.at(o) + first * to.channel, to.channel, width);
        });
}

// Each element of grad_input collects its parts of grad_output: no two calls add to one place.
template <class T, Interpolation kind>
void stretch_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                      const Stretches& stretches) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(grad_input, stretches.rank, "grad_input");
    const Volume from = volume_of(grad_output, stretches.rank, "grad_output");
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    for_each_block(
        stream, to, DIOPI_LAMBDA(const Voxel& p, int64_t first, int64_t width) {
            const Stretch &depth = stretches.axes[0], &rows = stretches.axes[1], &columns = stretches.axes[2];
            const Span across = columns.template covering<kind>(p.x);
            A sums[kWidth];
            for (int64_t c = 0; c < width; ++c) sums[c] = kNothing<A>;
            const Span slices = depth.template covering<kind>(p.z), down = rows.template covering<kind>(p.y);
            for_each_line(slices, down, [&](int64_t oz, int64_t oy) {
                const double height = depth.template weight<kind>(oz, p.z) * rows.template weight<kind>(oy, p.y);
                const T* line = source + from.at(p.image, oz, oy, 0) + first * from.channel;
                for (int64_t ox = across.begin; ox < across.end; ++ox) {
                    const T* values = line + ox * from.steps[2];
                    const A factor = static_cast<A>(height * columns.template weight<kind>(ox, p.x));
                    for_each_lane(0, width, from.channel,
                                  [&](int64_t c, int64_t at) { sums[c] += factor * cast<A>(values[at]); });
                }
            });
            T* results = target + to.at(p) + first * to.channel;
            for_each_lane(0, width, to.channel, [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c] + A(0)); });
        });
}

// Where one coordinate of the grid lies among `size` elements: -1 and 1 are the outer edges of the first and the last.
// What is far outside, or no number, is one place outside.
DIOPI_HD inline double position_of(double coordinate, int64_t size) {
    constexpr double kOutside = -8;
    const double position = ((coordinate + 1) * static_cast<double>(size) - 1) / 2;
    return position > kOutside && position < static_cast<double>(size) - kOutside ? position : kOutside;
}

// `grid` has the coordinates in the place of channels, x first.
template <class T>
void sample(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const TensorView& grid,
            int rank, Interpolation kind) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, rank, "out"), from = volume_of(input, rank, "input");
    const Volume places = volume_of(grid, rank, "grid");
    T* target = out.as<T>();
    const T* source = input.as<T>();
    const T* coordinates = grid.as<T>();
    for_each_block(
        stream, to, DIOPI_LAMBDA(const Voxel& o, int64_t first, int64_t width) {
            const T* here = coordinates + places.at(o);
            const auto along = [&](int axis) -> Taps {
                if (axis < first_axis(rank)) return kOneTap;
                const auto coordinate = cast<double>(here[(kAxes - 1 - axis) * places.channel]);
                return taps_at(kind, position_of(coordinate, from.sizes[axis]));
            };
            Mixture<A, T> mixture(source + o.image * from.image + first * from.channel);
            for_each_tap(along(0), along(1), along(2), [&](int64_t z, int64_t y, int64_t x, double weight) {
                if (z < 0 || z >= from.sizes[0] || y < 0 || y >= from.sizes[1] || x < 0 || x >= from.sizes[2]) return;
                mixture.add(from.at(0, z, y, x), weight);
            });
            mixture.blend(from.channel, target + to.at(o) + first * to.channel, to.channel, width);
        });
}

// Positions of a plane between its pixels, a piece of them at a time: where their neighbours are and what these count, in
// vectors, then channel by channel. No branch depends on where a position lies. A thread of a GPU has one position.
template <class T>
struct PlaneSampleTask {
    using A = AccumulateType<T>;
    static constexpr int64_t kPiece = kRunLength == 1 ? 1 : 32;

    Volume to, from, places;
    T* target;
    const T* source;
    const T* coordinates;
    Divider pieces;  // of an image

    PlaneSampleTask(const TensorView& out, const TensorView& input, const TensorView& grid)
        : to(volume_of(out, 2, "out")),
          from(volume_of(input, 2, "input")),
          places(volume_of(grid, 2, "grid")),
          target(out.as<T>()),
          source(input.as<T>()),
          coordinates(grid.as<T>()),
          pieces((to.positions() + kPiece - 1) / kPiece) {}

    bool suits() const { return to.even() && places.even() && from.positions() <= INT32_MAX; }

    struct Corners {
        int32_t y[2][kPiece], x[2][kPiece];  // negative outside
        double down[2][kPiece], across[2][kPiece];

        // `first` of two axes, `second` behind it, each with its share.
        DIOPI_HD static void place(double coordinate, int64_t size, int64_t k, int32_t (&at)[2][kPiece],
                                   double (&share)[2][kPiece]) {
            const double position = position_of(coordinate, size), base = math::floor(position);
            const auto low = static_cast<int32_t>(base);
            const auto end = static_cast<int32_t>(size);
            at[0][k] = low | -static_cast<int32_t>(low >= end);
            at[1][k] = (low + 1) | -static_cast<int32_t>(low + 1 >= end);
            share[1][k] = position - base;
            share[0][k] = 1 - share[1][k];
        }
    };

    // Lanes behind `count` repeat the last position, so that each loop has a length that compilers know.
    DIOPI_HD DIOPI_FLATTEN void operator()(int64_t image) const {
        const int64_t first = pieces.split(image) * kPiece;
        const int64_t count = to.positions() - first < kPiece ? to.positions() - first : kPiece;
        const T* here = coordinates + image * places.image + first * places.steps[2];
        double columns[kPiece], rows[kPiece];
        for (int64_t k = 0; k < kPiece; ++k) {
            const T* pair = here + (k < count ? k : count - 1) * places.steps[2];
            columns[k] = cast<double>(pair[0]);
            rows[k] = cast<double>(pair[places.channel]);
        }
        Corners corners;
        DIOPI_VECTOR_LOOP
        for (int64_t k = 0; k < kPiece; ++k) {
            Corners::place(columns[k], from.sizes[2], k, corners.x, corners.across);
            Corners::place(rows[k], from.sizes[1], k, corners.y, corners.down);
        }
        int64_t offsets[4][kPiece];  // of the first element for what is outside
        int32_t outside[4][kPiece];  // -1, or 0 for one inside
        A weights[4][kPiece];
        DIOPI_UNROLL
        for (int corner = 0; corner < 4; ++corner) {
            const int32_t *y = corners.y[corner / 2], *x = corners.x[corner % 2];
            const double *down = corners.down[corner / 2], *across = corners.across[corner % 2];
            for (int64_t k = 0; k < kPiece; ++k) {
                outside[corner][k] = (y[k] | x[k]) >> 31;
                offsets[corner][k] = (y[k] * from.steps[1] + x[k] * from.steps[2]) & ~int64_t{outside[corner][k]};
                weights[corner][k] = static_cast<A>(down[k] * across[k]);
            }
        }
        for (int64_t c = 0; c < to.channels; ++c) {
            const T* plane = source + image * from.image + c * from.channel;
            T* results = target + image * to.image + c * to.channel + first * to.steps[2];
            A sums[kPiece] = {}, values[kPiece];
            DIOPI_UNROLL
            for (int corner = 0; corner < 4; ++corner) {
                for (int64_t k = 0; k < kPiece; ++k) values[k] = cast<A>(plane[offsets[corner][k]]);
                for (int64_t k = 0; k < kPiece; ++k)
                    sums[k] += weights[corner][k] * (outside[corner][k] < 0 ? A(0) : values[k]);
            }
            for (int64_t k = 0; k < count; ++k) results[k * to.steps[2]] = cast<T>(sums[k]);
        }
    }
};

template <class T>
void sample_by_kind(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const TensorView& grid,
                    int rank, Interpolation kind) {
    if (rank == 2 && kind == Interpolation::linear) {
        const PlaneSampleTask<T> task(out, input, grid);
        if (task.suits()) return for_each_index(stream, task.to.batch * task.pieces.size, task);
    }
    sample<T>(stream, out, input, grid, rank, kind);
}

// The last dimensions of `input`, as many as `size` names, become those of `output`.
Stretches stretches_of(const TensorView& input, const TensorView& output, const Sizes& size, Interpolation kind,
                       bool align_corners) {
    require(size.len >= 1 && size.len <= kAxes, "%lld dimensions are to be stretched, expected 1 to %d", size.len,
            kAxes);
    const int rank = static_cast<int>(size.len);
    const Volume from = volume_of(input, rank, "input"), to = volume_of(output, rank, "output");
    require_same_channels(from, to);
    require(from.positions() > 0 || to.positions() == 0, "an input without elements cannot be stretched");
    Stretches stretches{rank, {}};
    for (int axis = 0; axis < kAxes; ++axis) {
        const int64_t input = from.sizes[axis], output = to.sizes[axis];
        const bool corners = align_corners && kind != Interpolation::nearest;
        const double steps = static_cast<double>(output - (corners ? 1 : 0));
        const double step = steps > 0 ? static_cast<double>(input - (corners ? 1 : 0)) / steps : 0;
        const auto rounded = static_cast<double>(static_cast<float>(input) / static_cast<float>(output));
        stretches.axes[axis] = {corners, input, output, kind == Interpolation::nearest ? rounded : step};
    }
    return stretches;
}

// Calls f(type, kind, operands). Images are bytes at times, other integers are rare; neither have values in between.
template <class F>
void with_kind(Context ctx, const TensorView (&operands)[2], Interpolation kind, F&& f) {
    if (kind == Interpolation::nearest) {
        using Set = Types<float, double, Half, BFloat16, uint8_t, int64_t>;
        with_type<Set>(ctx, operands, operands[0].dtype,
                       [&](auto type, const auto& typed) { f(type, Known<Interpolation::nearest>{}, typed); });
        return;
    }
    with_wide_type<>(ctx, operands, [&](auto type, const auto& typed) {
        if (kind == Interpolation::linear) f(type, Known<Interpolation::linear>{}, typed);
        if (kind == Interpolation::cubic) f(type, Known<Interpolation::cubic>{}, typed);
    });
}

void stretch(Context ctx, Tensor out, ConstTensor input, const Sizes& size, Interpolation kind, bool align_corners) {
    const TensorView result = required_view(out, "out"), source = required_view(input, "input");
    const Stretches stretches = stretches_of(source, result, size, kind, align_corners);
    with_kind(ctx, {result, source}, kind, [&](auto type, auto known, const auto& typed) {
        stretch<typename decltype(type)::type, known.value>(stream_of(ctx), typed[0], typed[1], stretches);
    });
}

void stretch_backward(Context ctx, Tensor grad_input, ConstTensor grad_output, const Sizes& size, Interpolation kind,
                      bool align_corners) {
    const TensorView result = required_view(grad_input, "grad_input");
    const TensorView grads = required_view(grad_output, "grad_output");
    const Stretches stretches = stretches_of(result, grads, size, kind, align_corners);
    with_kind(ctx, {result, grads}, kind, [&](auto type, auto known, const auto& typed) {
        stretch_backward<typename decltype(type)::type, known.value>(stream_of(ctx), typed[0], typed[1], stretches);
    });
}

// The kind that `mode` names for `rank` dimensions.
Interpolation stretching_kind(const char* mode, int64_t rank) {
    require(mode != nullptr, "the string 'mode' is null");
    if (rank == 2 && strcmp(mode, "bicubic") == 0) return Interpolation::cubic;
    const char* const linear[] = {"linear", "bilinear", "trilinear"};
    require(rank >= 1 && rank <= kAxes && strcmp(mode, linear[rank - 1]) == 0,
            "'mode' is '%s', which does not stretch %lld dimensions", mode, rank);
    return Interpolation::linear;
}

Interpolation sampling_kind(const char* mode, int rank) {
    require(mode != nullptr, "the string 'mode' is null");
    if (strcmp(mode, "nearest") == 0) return Interpolation::nearest;
    if (strcmp(mode, "bilinear") == 0) return Interpolation::linear;
    require(strcmp(mode, "bicubic") == 0, "'mode' is '%s', expected 'bilinear', 'nearest' or 'bicubic'", mode);
    require(rank == 2, "'bicubic' samples planes, not tensors of %d dimensions", rank + 2);
    return Interpolation::cubic;
}

}  // namespace

diopiError_t diopiUpsampleNearest(Context ctx, Tensor out, ConstTensor input, Sizes size) {
    return guarded([&] { stretch(ctx, out, input, size, Interpolation::nearest, false); });
}

diopiError_t diopiUpsampleNearestBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, Sizes out_size,
                                          Sizes) {
    return guarded([&] { stretch_backward(ctx, grad_input, grad_output, out_size, Interpolation::nearest, false); });
}

diopiError_t diopiUpsampleLinear(Context ctx, Tensor out, ConstTensor input, Sizes size, bool align_corners,
                                 const char* mode) {
    return guarded([&] { stretch(ctx, out, input, size, stretching_kind(mode, size.len), align_corners); });
}

diopiError_t diopiUpsampleLinearBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, Sizes out_size, Sizes,
                                         bool align_corners, const char* mode) {
    return guarded([&] {
        const Interpolation kind = stretching_kind(mode, out_size.len);
        stretch_backward(ctx, grad_input, grad_output, out_size, kind, align_corners);
    });
}

diopiError_t diopiGridSample(Context ctx, Tensor out, ConstTensor input, ConstTensor grid, const char* mode) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), source = required_view(input, "input");
        const TensorView places = required_view(grid, "grid");
        const int rank = source.ndim - 2, last = places.ndim - 1;
        require(rank == 2 || rank == 3, "'input' has %d dimensions, expected 4 or 5", source.ndim);
        require(source.numel > 0 || result.numel == 0, "an input without elements cannot be sampled");
        require(last == rank + 1 && places.sizes[last] == rank, "'grid' gives no %d coordinates per position", rank);
        require(places.dtype == source.dtype, "'grid' and 'input' differ in dtype");
        const TensorView moved = with_dim(without_dim(places, last), 1, rank, places.strides[last]);
        require_same_sizes(selected(result, 1, 0), selected(moved, 1, 0), "out", "grid");
        const Interpolation kind = sampling_kind(mode, rank);
        with_wide_type<>(ctx, {result, source, moved}, [&](auto type, const auto& typed) {
            sample_by_kind<typename decltype(type)::type>(stream_of(ctx), typed[0], typed[1], typed[2], rank, kind);
        });
    });
}

}  // namespace impl::portable
