// Windows of planes written into columns, and columns added up to planes.
#include <diopi/diopirt.h>

#include "core/unit.h"
#include "space/volume.h"
#include "space/window.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The lists of both functions.
struct Lists {
    Sizes kernel, dilation, padding, stride;
};

// `columns` is [N, C * kernel, windows] for an `image` of [N, C, H, W]; N may be missing.
Windows windows_of(const Volume& image, const Volume& columns, const Lists& lists) {
    require(lists.kernel.len > 0, "'kernel_size' is empty");
    Window axes[2];
    for (int axis = 0; axis < 2; ++axis) {
        const int at = first_axis(2) + axis;
        axes[axis] =
            window_of(image.sizes[at], 0, value_for(lists.kernel, at, 2, 1, "kernel_size"),
                      value_for(lists.stride, at, 2, 1, "stride"), value_for(lists.padding, at, 2, 0, "padding"),
                      value_for(lists.dilation, at, 2, 1, "dilation"));
        const Window& w = axes[axis];
        const int64_t room = w.input + 2 * w.padding - w.dilation * (w.kernel - 1) - 1;
        require(room >= 0, "a window is larger than its plane with the padding");
        axes[axis].output = room / w.stride + 1;
    }
    const int64_t places = axes[0].output * axes[1].output, taps = axes[0].kernel * axes[1].kernel;
    require(columns.batch == image.batch && columns.channels == image.channels * taps && columns.sizes[2] == places,
            "there are %lld columns of %lld elements, expected %lld of %lld", columns.sizes[2], columns.channels,
            places, image.channels * taps);
    return {axes[0], axes[1]};
}

// One row of windows at a time, for one place in them.
template <class U>
void unfold(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Lists& lists) {
    using Value = typename Unit<U>::type;
    const Volume to = volume_of(out, 1, "out"), from = volume_of(input, 2, "input");
    const Windows windows = windows_of(from, to, lists);
    const Window rows = windows.rows, columns = windows.columns;
    Value* target = static_cast<Value*>(out.data);
    const Value* source = static_cast<const Value*>(input.data);
    for_runs(
        stream, to.batch * to.channels * rows.output, columns.output,
        DIOPI_LAMBDA(int64_t i, int64_t begin, int64_t end) {
            const int64_t line = i / rows.output, oy = i - line * rows.output;
            const int64_t image = line / to.channels, channel = line - image * to.channels;
            const int64_t tap_row = channel / columns.kernel, plane = tap_row / rows.kernel;
            const int64_t y = rows.start(oy) + (tap_row - plane * rows.kernel) * rows.dilation;
            const int64_t x = (channel - tap_row * columns.kernel) * columns.dilation;
            Value* results = target + image * to.image + channel * to.channel + oy * columns.output * to.steps[2];
            const Value* values = source + from.at(image, 0, y, 0) + plane * from.channel;
            const bool in_plane = y >= 0 && y < rows.input;
            for (int64_t ox = begin; ox < end; ++ox) {
                const int64_t at = columns.start(ox) + x;
                const bool inside = in_plane && at >= 0 && at < columns.input;
                results[ox * to.steps[2]] = inside ? values[at * from.steps[2]] : Value(0);
            }
        });
}

// Each pixel sums up its places in all windows, so that no two writes meet.
template <class T>
void fold(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Lists& lists) {
    using A = AccumulateType<T>;
    const Volume to = volume_of(out, 2, "out"), from = volume_of(input, 1, "input");
    const Windows windows = windows_of(to, from, lists);
    const Window rows = windows.rows, columns = windows.columns;
    const int64_t plane = rows.kernel * columns.kernel * from.channel;  // from a channel to the next
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_block(
        stream, to, DIOPI_LAMBDA(const Voxel& p, int64_t first, int64_t width) {
            const Range vertical = rows.covering(p.y), horizontal = columns.covering(p.x);
            A sums[kWidth];
            for (int64_t c = 0; c < width; ++c) sums[c] = kNothing<A>;
            for (int64_t oy = vertical.begin; oy < vertical.end; ++oy) {
                const int64_t ky = rows.place(oy, p.y);
                if (ky < 0) continue;
                for (int64_t ox = horizontal.begin; ox < horizontal.end; ++ox) {
                    const int64_t kx = columns.place(ox, p.x);
                    if (kx < 0) continue;
                    const int64_t tap = ky * columns.kernel + kx;
                    const T* values = source + from.at(p.image, 0, 0, oy * columns.output + ox) + tap * from.channel;
                    for (int64_t c = 0; c < width; ++c) sums[c] += cast<A>(values[(first + c) * plane]);
                }
            }
            T* results = target + to.at(p) + first * to.channel;
            for_each_lane(0, width, to.channel, [&](int64_t c, int64_t at) { results[at] = cast<T>(sums[c] + A(0)); });
        });
}

}  // namespace

diopiError_t diopiIm2Col(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes dilation, Sizes padding,
                         Sizes stride) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), source = required_view(input, "input");
        require(result.dtype == source.dtype, "'out' and 'input' differ in dtype");
        dispatch_unit(result.dtype, [&](auto unit) {
            unfold<typename decltype(unit)::plain>(stream_of(ctx), result, source,
                                                   {kernel_size, dilation, padding, stride});
        });
    });
}

diopiError_t diopiCol2Im(Context ctx, Tensor out, ConstTensor input, Sizes, Sizes kernel_size, Sizes dilation,
                         Sizes padding, Sizes stride) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), source = required_view(input, "input");
        dispatch<Number>(result.dtype, [&](auto type) {
            fold<typename decltype(type)::type>(stream_of(ctx), result, source,
                                                {kernel_size, dilation, padding, stride});
        });
    });
}

}  // namespace impl::portable
