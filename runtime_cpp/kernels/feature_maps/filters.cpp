// Filters that resample and that follow turned boxes, and the activation with a bias.
#include <diopi/diopirt.h>

#include "core/view.h"
#include "regions/regions.h"
#include "space/element.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// One axis of a resampling: zeros put between the elements, padding or cutting, a filter, and steps over its results.
struct Resampling {
    int64_t input, kernel;
    int64_t up, down, before, after;

    int64_t output(const char* axis) const {
        require(up > 0 && down > 0, "the factors of axis %s are not positive", axis);
        const int64_t length = input * up + before + after;
        require(kernel > 0 && length >= kernel, "a kernel of %lld does not fit into %lld elements of axis %s", kernel,
                length, axis);
        return (length - kernel) / down + 1;
    }

    // The element under place k of the filter at output o, or -1 for a zero.
    DIOPI_HD int64_t element(int64_t o, int64_t k) const {
        const int64_t spread = o * down + k - before;
        return spread >= 0 && spread % up == 0 && spread / up < input ? spread / up : -1;
    }
};

template <class T>
struct ResampleTask {
    Elements<T, 4> out;  // [images, rows, columns, channels]
    Elements<const T, 4> input;
    Elements<const T, 2> kernel;
    Resampling rows, columns;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = out.position(i);
        AccumulateType<T> sum(0);
        for (int64_t ky = 0; ky < rows.kernel; ++ky) {
            const int64_t y = rows.element(at[1], ky);
            for (int64_t kx = 0; y >= 0 && kx < columns.kernel; ++kx) {
                const int64_t x = columns.element(at[2], kx);
                if (x < 0) continue;
                sum += cast<AccumulateType<T>>(input(at[0], y, x, at[3])) *
                       cast<AccumulateType<T>>(kernel(rows.kernel - 1 - ky, columns.kernel - 1 - kx));
            }
        }
        out(at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

template <class T>
struct BiasActivationTask {
    T* out;
    const T *input, *bias, *refer;  // bias and refer may be null
    Space<1> input_space, refer_space;
    int64_t bias_stride, channels, inner;
    bool leaky, gradient;
    ComputeType<T> alpha, scale;

    DIOPI_HD void operator()(int64_t i) const {
        using C = ComputeType<T>;
        C value = cast<C>(input[input_space.offset(i)]);
        if (bias != nullptr) value += cast<C>(bias[i / inner % channels * bias_stride]);
        C sign = value;
        if (gradient) sign = refer == nullptr ? C(0) : cast<C>(refer[refer_space.offset(i)]);
        out[i] = cast<T>((leaky && !(sign > C(0)) ? value * alpha : value) * scale);
    }
};

// Each pixel with the samples at its box, y, x, width, height and angle: an image is a region, and its pixels are the
// bins.
struct BoxSampler {
    static constexpr bool kForAllChannels = true;

    Boxes boxes;
    int64_t height, width;
    double scale;
    int64_t points;  // the centre, and the corners if there are five

    DIOPI_HD int64_t image(int64_t region) const { return region; }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t region, int64_t, int64_t row, int64_t column, F&& f) const {
        f(row, column, 1.0);
        const double* box = boxes[(region * height + row) * width + column];
        const double cos = math::cos(box[4]), sin = math::sin(box[4]);
        for (int64_t k = 0; k < points; ++k) {
            const double along = k == 0 ? 0 : (k == 1 || k == 4 ? 1 : -1) * box[2] * scale / 2;
            const double aside = k == 0 ? 0 : (k <= 2 ? 1 : -1) * box[3] * scale / 2;
            const ImagePoint point{box[0] * scale + along * sin + aside * cos,
                                   box[1] * scale + along * cos - aside * sin};
            for_each_neighbour(point, height, width, f);
        }
    }
};

BoxSampler box_sampler(Context ctx, const TensorView& features, ConstTensor boxes, double scale, int64_t points) {
    require(points == 1 || points == 5, "'points' is %lld, expected 1 or 5", points);
    const Boxes rows = boxes_of(ctx, boxes, "best_bboxes", 5);
    require(rows.count == features.sizes[0] * features.sizes[2] * features.sizes[3], "there is no box for each pixel");
    return {rows, features.sizes[2], features.sizes[3], scale, points};
}

}  // namespace

diopiError_t diopiUpfirdn2dOpMmcv(Context ctx, Tensor* out, ConstTensor input, ConstTensor kernel, int64_t up_x,
                                  int64_t up_y, int64_t down_x, int64_t down_y, int64_t pad_x0, int64_t pad_x1,
                                  int64_t pad_y0, int64_t pad_y1) {
    return guarded([&] {
        const TensorView source = required_view(input, "input"), filter = required_view(kernel, "kernel");
        require(source.ndim == 4 && filter.ndim == 2, "expected 'input' of four dimensions and 'kernel' of two");
        const Resampling rows{source.sizes[1], filter.sizes[0], up_y, down_y, pad_y0, pad_y1};
        const Resampling columns{source.sizes[2], filter.sizes[1], up_x, down_x, pad_x0, pad_x1};
        const int64_t sizes[] = {source.sizes[0], rows.output("y"), columns.output("x"), source.sizes[3]};
        const TensorView result = allocated(ctx, out, sizes, 4, source.dtype);
        for_each_typed<Float, ResampleTask>(ctx, source.dtype, result.numel, Argument{result, "out"},
                                            Argument{source, "input"}, Argument{filter, "kernel"}, rows, columns);
    });
}

diopiError_t diopiFusedBiasLeakyreluMmcv(Context ctx, Tensor* out, ConstTensor input, ConstTensor bias,
                                         ConstTensor refer, int64_t act, int64_t grad, float alpha, float scale) {
    return guarded([&] {
        require(act == 1 || act == 3, "'act' is %lld, expected 1 or 3", act);
        require(grad >= 0 && grad <= 2, "'grad' is %lld, expected 0, 1 or 2", grad);
        const TensorView source = required_view(input, "input"), added = view(bias), earlier = view(refer);
        const TensorView result = allocated(ctx, out, source.sizes, source.ndim, source.dtype);
        const bool biased = added && added.numel > 0, referred = earlier && earlier.numel > 0;
        require(!biased || (source.ndim > 1 && added.ndim == 1 && added.numel == source.sizes[1]),
                "'bias' has no number for each channel");
        require(!referred || earlier.same_sizes(source), "'refer' and 'input' differ in shape");
        if (grad == 2) return fill_zero(ctx, result);
        int64_t inner = 1;
        for (int d = 2; d < source.ndim; ++d) inner *= source.sizes[d];
        dispatch<Float>(source.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            using C = ComputeType<T>;
            const T* biases = biased ? elements_of<const T, 1>(added, "bias").data : nullptr;
            if (referred && earlier.dtype != source.dtype) fail_dtype(earlier.dtype);
            for_each(ctx, result.numel,
                     BiasActivationTask<T>{result.as<T>(), source.as<const T>(), biases,
                                           referred ? earlier.as<const T>() : nullptr, space_of(source),
                                           space_of(referred ? earlier : source), biased ? added.strides[0] : 0,
                                           biased ? added.numel : 1, inner, act == 3, grad == 1, static_cast<C>(alpha),
                                           static_cast<C>(scale)});
        });
    });
}

diopiError_t diopiRotatedFeatureAlignMmcv(Context ctx, Tensor output, ConstTensor features, ConstTensor best_bboxes,
                                          float spatial_scale, int64_t points) {
    return guarded([&] {
        const TensorView images = images_view(features, "features"), result = required_view(output, "output");
        require_same_sizes(result, images, "output", "features");
        pool_regions(ctx, result, images, box_sampler(ctx, images, best_bboxes, spatial_scale, points));
    });
}

diopiError_t diopiRotatedFeatureAlignBackwardMmcv(Context ctx, Tensor bottom_grad, ConstTensor top_grad,
                                                  ConstTensor best_bboxes, float spatial_scale, int64_t points) {
    return guarded([&] {
        const TensorView images = images_view(bottom_grad, "bottom_grad"), grads = required_view(top_grad, "top_grad");
        require_same_sizes(images, grads, "bottom_grad", "top_grad");
        spread_regions(ctx, images, Target::overwritten, grads,
                       box_sampler(ctx, images, best_bboxes, spatial_scale, points));
    });
}

}  // namespace impl::portable
