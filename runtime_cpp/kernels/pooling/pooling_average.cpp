// The averages of windows, and their gradients: what a result is the sum of, it collects itself.
#include "copy/common_dtype.h"
#include "core/view.h"
#include "pooling_lanes.h"

namespace diopi::kernels {
namespace {

template <class T>
void average(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, Areas areas,
             const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, areas.rank, "out");
    Volume from = volume_of(input, areas.rank, "input");
    join_whole_axes(areas, from);
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_strip(
        stream, to, from.channels_last(), areas.columns_at_once(), DIOPI_LAMBDA(const Strip& s) {
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
                        for_each_lane(begin, end, apart,
                                      [&](int64_t c, int64_t at) { sums[c] += cast<A>(values[at]); });
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
    for_each_strip(
        stream, to, to.channels_last(), areas.columns_covered(), DIOPI_LAMBDA(const Strip& s) {
            A sums[kWidth], parts[kWidth], lengths[kWidth];
            const int64_t left = s.first.x, width = s.width();
            const int64_t first = areas.covering(2, left).begin, end = areas.covering(2, left + s.columns - 1).end;
            const Strip windows{
                {s.first.image, 0, 0, first}, s.channel, s.channels, s.columns == 1 ? 1 : end - first, 1};
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

Divisor divisor_of(bool count_padding, const int64_t* divisor_override) {
    require(divisor_override == nullptr || *divisor_override != 0, "divisor_override is zero");
    return {divisor_override == nullptr ? 0 : *divisor_override, count_padding};
}

// An average ignores the dilation, for which callers give zeros.
Sliding undilated(const Sliding& lists) { return {lists.kernel, lists.stride, lists.padding, {}, lists.adaptive}; }

}  // namespace

diopiError_t pool_average(Context ctx, int rank, Tensor out, ConstTensor input, const Sliding& lists,
                          bool count_padding, const int64_t* divisor_override) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), source = required_view(input, "input");
        const Areas areas = areas_of(source, result, rank, undilated(lists));
        const Divisor divisor = divisor_of(count_padding, divisor_override);
        with_type<Float>(ctx, {result, source}, result.dtype, [&](auto type, const TensorView(&typed)[2]) {
            average<typename decltype(type)::type>(stream_of(ctx), typed[0], typed[1], areas, divisor);
        });
    });
}

diopiError_t pool_average_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output,
                                   const Sliding& lists, bool count_padding, const int64_t* divisor_override) {
    return guarded([&] {
        const TensorView result = required_view(grad_input, "grad_input");
        const TensorView grads = required_view(grad_output, "grad_output");
        const Areas areas = areas_of(result, grads, rank, undilated(lists));
        const Divisor divisor = divisor_of(count_padding, divisor_override);
        with_type<Float>(ctx, {result, grads}, result.dtype, [&](auto type, const TensorView(&typed)[2]) {
            average_backward<typename decltype(type)::type>(stream_of(ctx), typed[0], typed[1], areas, divisor);
        });
    });
}

}  // namespace diopi::kernels
