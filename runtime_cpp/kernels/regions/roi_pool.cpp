// The greatest pixel of each bin of a region, and the greatest sample on each border of a box.
#include <diopi/diopirt.h>

#include "core/view.h"
#include "regions.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// One axis of a region: bins hold all pixels that they touch, and a box its last pixel.
struct TouchedPixels {
    double begin, size;
    int64_t length;
    DIOPI_HD int64_t first(int64_t bin) const {
        const double start = math::floor(begin + bin * size);
        return start > 0 ? static_cast<int64_t>(start) : 0;
    }
    DIOPI_HD int64_t end(int64_t bin) const {
        const double stop = math::ceil(begin + (bin + 1) * size);
        return stop < static_cast<double>(length) ? static_cast<int64_t>(stop) : length;
    }
};

template <class T>
struct GreatestPixelTask {
    Elements<T, 4> out;
    Elements<int32_t, 4> argmax;
    Elements<const T, 4> input;
    Boxes rois;
    double scale;

    DIOPI_HD TouchedPixels axis(const double* roi, int which, int64_t bins) const {
        const double begin = roi[2 - which] * scale, end = (roi[4 - which] + 1) * scale;
        return {begin, (end - begin) / bins, input.sizes[2 + which]};
    }

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = out.position(i);
        const double* roi = rois[at[0]];
        const auto image = static_cast<int64_t>(roi[0]);
        const TouchedPixels rows = axis(roi, 0, out.sizes[2]), columns = axis(roi, 1, out.sizes[3]);
        const int64_t bottom = rows.end(at[2]), right = columns.end(at[3]);
        Greatest greatest;
        int64_t place = -1;
        const bool known = image >= 0 && image < input.sizes[0];
        for (int64_t y = rows.first(at[2]); known && y < bottom; ++y) {
            for (int64_t x = columns.first(at[3]); x < right; ++x) {
                if (greatest.see(cast<double>(input(image, at[1], y, x)))) place = y * input.sizes[3] + x;
            }
        }
        out(at[0], at[1], at[2], at[3]) = cast<T>(greatest.value);
        argmax(at[0], at[1], at[2], at[3]) = static_cast<int32_t>(place);
    }
};

struct PixelSampler {
    static constexpr bool kForAllChannels = false;

    Elements<const int32_t, 4> argmax;
    Boxes rois;
    int64_t width;

    DIOPI_HD int64_t image(int64_t region) const { return static_cast<int64_t>(rois[region][0]); }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t region, int64_t channel, int64_t row, int64_t column, F&& f) const {
        const int64_t place = argmax(region, channel, row, column);
        if (place >= 0) f(place / width, place % width, 1.0);
    }
};

// The borders of a box in their order: top, left, bottom, right. The first two start at the first corner, the others at
// the last.
struct Borders {
    Boxes boxes;
    int64_t steps;

    DIOPI_HD ImagePoint sample(int64_t box, int64_t border, int64_t step) const {
        const double* corners = boxes[box] + (border < 2 ? 0 : 2);
        const double* others = boxes[box] + (border < 2 ? 2 : 0);
        const double along = static_cast<double>(step) / steps;
        const double x = corners[0] + (border % 2 == 0 ? (others[0] - corners[0]) * along : 0);
        const double y = corners[1] + (border % 2 == 1 ? (others[1] - corners[1]) * along : 0);
        return {y, x};
    }
};

Borders borders_of(Context ctx, ConstTensor boxes, int64_t pool_size) {
    require(pool_size > 0, "'pool_size' is %lld, expected a positive number", pool_size);
    return {boxes_of(ctx, boxes, "boxes", 4), pool_size};
}

template <class T>
struct BorderTask {
    Elements<T, 4> out;  // [images, channels of a border, boxes, borders]
    Elements<int32_t, 4> argmax;
    Elements<const T, 4> input;
    Borders borders;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = out.position(i);
        const int64_t channel = at[3] * out.sizes[1] + at[1];
        Greatest greatest;
        for (int64_t step = 0; step <= borders.steps; ++step) {
            double value = 0;
            for_each_neighbour(borders.sample(at[0] * out.sizes[2] + at[2], at[3], step), input.sizes[2],
                               input.sizes[3], [&](int64_t y, int64_t x, double share) {
                                   value += share * cast<double>(input(at[0], channel, y, x));
                               });
            greatest.see(value);
        }
        out(at[0], at[1], at[2], at[3]) = cast<T>(greatest.value);
        argmax(at[0], at[1], at[2], at[3]) = static_cast<int32_t>(greatest.index);
    }
};

// The boxes of all images as regions of one bin, whose channels are those of the image.
struct BorderSampler {
    static constexpr bool kForAllChannels = false;

    Elements<const int32_t, 4> argmax;  // [regions, channels, 1, 1]
    Borders borders;
    int64_t boxes_of_image, height, width;

    DIOPI_HD int64_t image(int64_t region) const { return region / boxes_of_image; }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t region, int64_t channel, int64_t, int64_t, F&& f) const {
        const int64_t border = channel / (argmax.sizes[1] / 4);
        for_each_neighbour(borders.sample(region, border, argmax(region, channel, 0, 0)), height, width, f);
    }
};

// [images, channels of a border, boxes, borders] as [images * boxes, channels, 1, 1].
TensorView border_channels(Context ctx, const TensorView& tensor) {
    require(tensor.ndim == 4 && tensor.sizes[3] == 4, "expected four dimensions, the last one of the borders");
    const TensorView ordered = transposed(transposed(tensor, 1, 2), 2, 3);
    const TensorView dense = contiguous_as(ctx, ordered, tensor.dtype);
    const int64_t sizes[] = {ordered.sizes[0] * ordered.sizes[1], 4 * ordered.sizes[3], 1, 1};
    return dense_view(dense.data, dense.dtype, sizes, 4);
}

}  // namespace

diopiError_t diopiRoiPoolMmcv(Context ctx, Tensor output, Tensor argmax, ConstTensor input, ConstTensor rois,
                              int64_t pooled_height, int64_t pooled_width, float spatial_scale) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const TensorView result = pooled_view(output, "output", rois, images, pooled_height, pooled_width);
        require_sizes(required_view(argmax, "argmax"), "argmax",
                      {result.sizes[0], result.sizes[1], pooled_height, pooled_width});
        const auto places = elements_of<int32_t, 4>(argmax, "argmax");
        const Boxes boxes = boxes_of(ctx, rois, "rois", 5);
        for_each_typed<Float, GreatestPixelTask>(ctx, result.dtype, result.numel, Argument{result, "output"}, places,
                                                 Argument{images, "input"}, boxes, spatial_scale);
    });
}

diopiError_t diopiRoiPoolBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor rois,
                                      ConstTensor argmax, int64_t pooled_height, int64_t pooled_width, float) {
    return guarded([&] {
        const TensorView images = images_view(grad_input, "grad_input");
        const TensorView grads = pooled_view(grad_output, "grad_output", rois, images, pooled_height, pooled_width);
        const PixelSampler sampler{elements_of<const int32_t, 4>(argmax, "argmax"), boxes_of(ctx, rois, "rois", 5),
                                   images.sizes[3]};
        spread_regions(ctx, images, Target::overwritten, grads, sampler);
    });
}

diopiError_t diopiBorderAlignMmcv(Context ctx, Tensor output, Tensor argmax_idx, ConstTensor input, ConstTensor boxes,
                                  int64_t pool_size) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const int64_t count = required_view(boxes, "boxes").sizes[1];
        const TensorView result = sized_view(output, "output", {images.sizes[0], images.sizes[1] / 4, count, 4});
        require_same_sizes(result, required_view(argmax_idx, "argmax_idx"), "output", "argmax_idx");
        const auto steps = elements_of<int32_t, 4>(argmax_idx, "argmax_idx");
        const Borders borders = borders_of(ctx, boxes, pool_size);
        for_each_typed<Float, BorderTask>(ctx, result.dtype, result.numel, Argument{result, "output"}, steps,
                                          Argument{images, "input"}, borders);
    });
}

diopiError_t diopiBorderAlignBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor boxes,
                                          ConstTensor argmax_idx, int64_t pool_size) {
    return guarded([&] {
        const TensorView images = images_view(grad_input, "grad_input"),
                         grads = required_view(grad_output, "grad_output");
        require_same_sizes(grads, required_view(argmax_idx, "argmax_idx"), "grad_output", "argmax_idx");
        const TensorView steps = border_channels(ctx, required_view(argmax_idx, "argmax_idx"));
        const BorderSampler sampler{elements_of<const int32_t, 4>(steps, "argmax_idx"),
                                    borders_of(ctx, boxes, pool_size), view(argmax_idx).sizes[2], images.sizes[2],
                                    images.sizes[3]};
        spread_regions(ctx, images, Target::overwritten, border_channels(ctx, grads), sampler);
    });
}

}  // namespace impl::portable
