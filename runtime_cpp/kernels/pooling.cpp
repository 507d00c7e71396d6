// 2-D pooling and its gradients. Neighbouring channels are worked on together, which is the order of NHWC memory; no
// two calls add to the same place, so that results do not depend on the order of the work.
#include <diopi/diopirt.h>

#include <limits>

#include "core/copy.h"
#include "core/runs.h"
#include "core/slices.h"
#include "core/window.h"

namespace diopi::kernels {
namespace {

// Four strides by name.
struct Planes {
    int64_t batch, channels, rows, columns;  // sizes
    int64_t image, channel, row, column;     // strides
    DIOPI_HD int64_t at(int64_t n, int64_t y, int64_t x) const { return n * image + y * row + x * column; }
};

Planes planes_of(const TensorView& t) {
    return {t.sizes[0], t.sizes[1], t.sizes[2], t.sizes[3], t.strides[0], t.strides[1], t.strides[2], t.strides[3]};
}

struct Pixel {
    int64_t image, row, column;
};

DIOPI_HD inline Pixel pixel_at(const Planes& planes, int64_t index) {
    const int64_t line = index / planes.columns;
    return {line / planes.rows, line % planes.rows, index - line * planes.columns};
}

// The averaged area of one axis: the usual windows, or the adaptive ones, which divide the input as evenly as they can.
struct FixedArea {
    Window axis;
    DIOPI_HD Range area(int64_t o) const {
        const int64_t start = axis.start(o);
        const int64_t stop = start + axis.kernel;
        return {start < 0 ? 0 : start, stop < axis.input ? stop : axis.input};
    }
    // With the padding that the window covers, but not what lies behind the padding.
    DIOPI_HD int64_t padded_length(int64_t o) const {
        const int64_t start = axis.start(o);
        const int64_t stop = start + axis.kernel;
        const int64_t limit = axis.input + axis.padding;
        return (stop < limit ? stop : limit) - start;
    }
    DIOPI_HD Range covering(int64_t i) const { return axis.covering(i); }
};

struct AdaptiveArea {
    int64_t input, output;
    DIOPI_HD Range area(int64_t o) const { return {o * input / output, ((o + 1) * input + output - 1) / output}; }
    DIOPI_HD int64_t padded_length(int64_t o) const { return area(o).end - area(o).begin; }
    DIOPI_HD Range covering(int64_t i) const { return {i * output / input, ((i + 1) * output + input - 1) / input}; }
};

struct Divisor {
    int64_t fixed;  // zero: the window's own size
    bool count_padding;
    template <class Area>
    DIOPI_HD double of(const Area& rows, const Area& columns, int64_t oy, int64_t ox) const {
        if (fixed != 0) return static_cast<double>(fixed);
        if (count_padding) return static_cast<double>(rows.padded_length(oy) * columns.padded_length(ox));
        const Range y = rows.area(oy), x = columns.area(ox);
        return static_cast<double>((y.end - y.begin) * (x.end - x.begin));
    }
};

constexpr int64_t kWidth = kRunLength == 1 ? 1 : 64;  // channels that one call keeps running values for

// Nothing is smaller.
template <class C>
constexpr C kLowest =
    std::is_floating_point_v<C> ? -std::numeric_limits<C>::infinity() : std::numeric_limits<C>::lowest();

// Keeps the larger of two runs, and in `tap` where it was seen. The taps are numbered in 32 bits, so that a vector of
// them is as wide as one of floats.
template <class T, class C>
DIOPI_HD inline void keep_larger(C* best, int32_t* taps, const T* values, int64_t step, int64_t width, int32_t tap) {
    for (int64_t c = 0; c < width; ++c) {
        const C value = cast<C>(values[c * step]);
        const bool larger = (value > best[c]) | (value != value);  // NaN wins, the last one as in torch
        best[c] = larger ? value : best[c];
        taps[c] = larger ? tap : taps[c];
    }
}

template <class T, class I>
void max_pool(diopiStreamHandle_t stream, const TensorView& out, const TensorView& indices, const TensorView& input,
              const Windows& windows) {
    using C = ComputeType<T>;
    const Planes to = planes_of(out), from = planes_of(input);
    const Planes places = indices ? planes_of(indices) : Planes{};
    const Window rows = windows.rows, columns = windows.columns;
    const int64_t blocks = (to.channels + kWidth - 1) / kWidth;
    T* target = out.as<T>();
    I* target_index = indices ? indices.as<I>() : nullptr;
    const T* source = input.as<T>();
    for_each_index(stream, to.batch * to.rows * to.columns * blocks, DIOPI_LAMBDA(int64_t i) {
        const Pixel o = pixel_at(to, i / blocks);
        const int64_t first = i % blocks * kWidth;
        const int64_t width = to.channels - first < kWidth ? to.channels - first : kWidth;
        const Range dy = rows.inside(o.row), dx = columns.inside(o.column);
        C best[kWidth];
        int32_t taps[kWidth];
        for (int64_t c = 0; c < width; ++c) {
            best[c] = kLowest<C>;
            taps[c] = static_cast<int32_t>(dy.begin * columns.kernel + dx.begin);
        }
        for (int64_t ky = dy.begin; ky < dy.end; ++ky) {
            for (int64_t kx = dx.begin; kx < dx.end; ++kx) {
                const int64_t y = rows.start(o.row) + ky * rows.dilation;
                const int64_t x = columns.start(o.column) + kx * columns.dilation;
                const T* values = source + from.at(o.image, y, x) + first * from.channel;
                const auto tap = static_cast<int32_t>(ky * columns.kernel + kx);
                if (from.channel == 1) {
                    keep_larger(best, taps, values, 1, width, tap);
                } else {
                    keep_larger(best, taps, values, from.channel, width, tap);
                }
            }
        }
        const int64_t at = to.at(o.image, o.row, o.column);
        for (int64_t c = 0; c < width; ++c) target[at + (first + c) * to.channel] = cast<T>(best[c]);
        if (target_index == nullptr) return;
        const int64_t index_at = places.at(o.image, o.row, o.column);
        for (int64_t c = 0; c < width; ++c) {
            const int32_t ky = taps[c] / static_cast<int32_t>(columns.kernel);
            const int64_t y = rows.start(o.row) + ky * rows.dilation;
            const int64_t x = columns.start(o.column) + (taps[c] - ky * columns.kernel) * columns.dilation;
            target_index[index_at + (first + c) * places.channel] = static_cast<I>(y * from.columns + x);
        }
    });
}

// The channels of one image walk their windows in order: no other call adds to the same planes, so that sums do not
// depend on timing. grad_input is zero before.
template <class T, class I>
void max_pool_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                       const TensorView& indices) {
    const Planes to = planes_of(grad_input), from = planes_of(grad_output), places = planes_of(indices);
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const I* winners = indices.as<I>();
    const bool even_rows = to.row == to.column * to.columns;  // a place in the plane is then one multiplication away
    for_runs(stream, to.batch, to.channels, DIOPI_LAMBDA(int64_t image, int64_t begin, int64_t end) {
        T* planes = target + image * to.image;
        for (int64_t window = 0; window < from.rows * from.columns; ++window) {
            const int64_t oy = window / from.columns, ox = window % from.columns;
            const T* values = source + from.at(image, oy, ox);
            const I* chosen = winners + places.at(image, oy, ox);
            for (int64_t c = begin; c < end; ++c) {
                const int64_t place = chosen[c * places.channel];
                const int64_t at =
                    even_rows ? place * to.column : place / to.columns * to.row + place % to.columns * to.column;
                T& sum = planes[at + c * to.channel];
                sum = static_cast<T>(sum + values[c * from.channel]);
            }
        }
    });
}

template <class T, class Area>
void average(diopiStreamHandle_t stream, const TensorView& out, const TensorView& input, const Area& rows,
             const Area& columns, const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Planes to = planes_of(out), from = planes_of(input);
    const int64_t blocks = (to.channels + kWidth - 1) / kWidth;
    T* target = out.as<T>();
    const T* source = input.as<T>();
    for_each_index(stream, to.batch * to.rows * to.columns * blocks, DIOPI_LAMBDA(int64_t i) {
        const Pixel o = pixel_at(to, i / blocks);
        const int64_t first = i % blocks * kWidth;
        const int64_t width = to.channels - first < kWidth ? to.channels - first : kWidth;
        const Range vertical = rows.area(o.row), horizontal = columns.area(o.column);
        A sums[kWidth];
        for (int64_t c = 0; c < width; ++c) sums[c] = A(0);
        for (int64_t y = vertical.begin; y < vertical.end; ++y) {
            for (int64_t x = horizontal.begin; x < horizontal.end; ++x) {
                const T* values = source + from.at(o.image, y, x) + first * from.channel;
                for (int64_t c = 0; c < width; ++c) sums[c] += cast<A>(values[c * from.channel]);
            }
        }
        const A count = static_cast<A>(divisor.of(rows, columns, o.row, o.column));
        const int64_t at = to.at(o.image, o.row, o.column) + first * to.channel;
        for (int64_t c = 0; c < width; ++c) target[at + c * to.channel] = cast<T>(sums[c] / count);
    });
}

template <class T, class Area>
void average_backward(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
                      const Area& rows, const Area& columns, const Divisor& divisor) {
    using A = AccumulateType<T>;
    const Planes to = planes_of(grad_input), from = planes_of(grad_output);
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const int64_t blocks = (to.channels + kWidth - 1) / kWidth;
    for_each_index(stream, to.batch * to.rows * to.columns * blocks, DIOPI_LAMBDA(int64_t i) {
        const Pixel p = pixel_at(to, i / blocks);
        const int64_t first = i % blocks * kWidth;
        const int64_t width = to.channels - first < kWidth ? to.channels - first : kWidth;
        const Range vertical = rows.covering(p.row), horizontal = columns.covering(p.column);
        A sums[kWidth];
        for (int64_t c = 0; c < width; ++c) sums[c] = A(0);
        for (int64_t oy = vertical.begin; oy < vertical.end; ++oy) {
            for (int64_t ox = horizontal.begin; ox < horizontal.end; ++ox) {
                const A count = static_cast<A>(divisor.of(rows, columns, oy, ox));
                const T* values = source + from.at(p.image, oy, ox) + first * from.channel;
                for (int64_t c = 0; c < width; ++c) sums[c] += cast<A>(values[c * from.channel]) / count;
            }
        }
        const int64_t at = to.at(p.image, p.row, p.column) + first * to.channel;
        for (int64_t c = 0; c < width; ++c) target[at + c * to.channel] = cast<T>(sums[c]);
    });
}

// The stride of a pooling is its kernel size when none is given.
Windows windows_of(const TensorView& input, const TensorView& output, const diopiSize_t& kernel,
                   const diopiSize_t& stride, const diopiSize_t& padding, const diopiSize_t& dilation) {
    Window axes[2];
    for (int axis = 0; axis < 2; ++axis) {
        const int64_t size = pair_at(kernel, axis, 1, "kernel_size");
        axes[axis] =
            window_of(input.sizes[2 + axis], output.sizes[2 + axis], size, pair_at(stride, axis, size, "stride"),
                      pair_at(padding, axis, 0, "padding"), pair_at(dilation, axis, 1, "dilation"));
    }
    require(input.sizes[0] == output.sizes[0] && input.sizes[1] == output.sizes[1],
            "pooling keeps the numbers of images and channels");
    return {axes[0], axes[1]};
}

template <class F>
void dispatch_indexed(diopiDtype_t dtype, diopiDtype_t index, F&& f) {
    dispatch<Number>(dtype, [&](auto type) { dispatch<Index>(index, [&](auto index_type) { f(type, index_type); }); });
}

Divisor divisor_of(bool count_include_pad, const int64_t* divisor_override) {
    require(divisor_override == nullptr || *divisor_override != 0, "divisor_override is zero");
    return {divisor_override == nullptr ? 0 : *divisor_override, count_include_pad};
}

void pool_maximum(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t indices,
                  diopiConstTensorHandle_t input, const diopiSize_t& kernel, const diopiSize_t& stride,
                  const diopiSize_t& padding, const diopiSize_t& dilation) {
    const TensorView result = batch_of_planes(required_view(out, "out"));
    const TensorView planes = batch_of_planes(required_view(input, "input"));
    const TensorView places = indices == nullptr ? undefined_view() : batch_of_planes(view(indices));
    const Windows windows = windows_of(planes, result, kernel, stride, padding, dilation);
    dispatch_indexed(result.dtype, places ? places.dtype : diopi_dtype_int64, [&](auto type, auto index) {
        max_pool<typename decltype(type)::type, typename decltype(index)::type>(stream_of(ctx), result, places, planes,
                                                                                windows);
    });
}

}  // namespace
}  // namespace diopi::kernels

namespace impl {
namespace portable {

using namespace diopi::kernels;

diopiError_t diopiMaxPool2d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                            bool) {
    return guarded([&] { pool_maximum(ctx, out, nullptr, input, kernel_size, stride, padding, dilation); });
}

diopiError_t diopiMaxPool2dWithIndices(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t indices,
                                       diopiConstTensorHandle_t input, diopiSize_t kernel_size, diopiSize_t stride,
                                       diopiSize_t padding, diopiSize_t dilation, bool) {
    return guarded([&] { pool_maximum(ctx, out, indices, input, kernel_size, stride, padding, dilation); });
}

diopiError_t diopiMaxPool2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding,
                                    diopiSize_t dilation, bool, diopiConstTensorHandle_t indices) {
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(grad_input, "grad_input"));
        const TensorView grads = batch_of_planes(required_view(grad_output, "grad_output"));
        const TensorView places = batch_of_planes(required_view(indices, "indices"));
        static_cast<void>(required_view(input, "input"));
        static_cast<void>(windows_of(result, grads, kernel_size, stride, padding, dilation));
        require_same_sizes(grads, places, "grad_output", "indices");
        const TensorView sums = converted(ctx, result, sum_dtype(result.dtype));
        const TensorView values = converted(ctx, grads, sums.dtype);
        fill_zero(ctx, sums);
        using Summed = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t>;
        dispatch<Summed>(sums.dtype, [&](auto type) {
            dispatch<Index>(places.dtype, [&](auto index) {
                max_pool_backward<typename decltype(type)::type, typename decltype(index)::type>(stream_of(ctx), sums,
                                                                                                 values, places);
            });
        });
        copy_elements(ctx, result, sums);
    });
}

diopiError_t diopiAvgPool2d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool,
                            bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(out, "out"));
        const TensorView planes = batch_of_planes(required_view(input, "input"));
        const Windows windows = windows_of(planes, result, kernel_size, stride, padding, diopiSize_t{nullptr, 0});
        const FixedArea rows{windows.rows}, columns{windows.columns};
        dispatch<Number>(result.dtype, [&](auto type) {
            average<typename decltype(type)::type>(stream_of(ctx), result, planes, rows, columns,
                                                   divisor_of(count_include_pad, divisor_override));
        });
    });
}

diopiError_t diopiAvgPool2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool,
                                    bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(grad_input, "grad_input"));
        const TensorView grads = batch_of_planes(required_view(grad_output, "grad_output"));
        const Windows windows = windows_of(result, grads, kernel_size, stride, padding, diopiSize_t{nullptr, 0});
        const FixedArea rows{windows.rows}, columns{windows.columns};
        dispatch<Number>(result.dtype, [&](auto type) {
            average_backward<typename decltype(type)::type>(stream_of(ctx), result, grads, rows, columns,
                                                            divisor_of(count_include_pad, divisor_override));
        });
    });
}

diopiError_t diopiAdaptiveAvgPool2d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                    diopiSize_t) {
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(out, "out"));
        const TensorView planes = batch_of_planes(required_view(input, "input"));
        const AdaptiveArea rows{planes.sizes[2], result.sizes[2]}, columns{planes.sizes[3], result.sizes[3]};
        dispatch<Float>(result.dtype, [&](auto type) {
            average<typename decltype(type)::type>(stream_of(ctx), result, planes, rows, columns, Divisor{0, false});
        });
    });
}

diopiError_t diopiAdaptiveAvgPool2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                            diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t) {
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(grad_input, "grad_input"));
        const TensorView grads = batch_of_planes(required_view(grad_output, "grad_output"));
        const AdaptiveArea rows{result.sizes[2], grads.sizes[2]}, columns{result.sizes[3], grads.sizes[3]};
        dispatch<Float>(result.dtype, [&](auto type) {
            average_backward<typename decltype(type)::type>(stream_of(ctx), result, grads, rows, columns,
                                                            Divisor{0, false});
        });
    });
}

}  // namespace portable
}  // namespace impl
