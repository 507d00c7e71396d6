// Regions pooled from bilinear samples: their mean, or the greatest of them with its place.
#include <diopi/diopirt.h>

#include "core/view.h"
#include "regions.h"
#include "space/bilinear.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

RoiForm upright(int64_t bins_down, int64_t bins_across, int64_t ratio, double scale, bool aligned) {
    return {bins_down, bins_across, ratio, scale, aligned ? 0.5 : 0.0, aligned ? -math::infinity<double> : 1.0,
            false,     false};
}

template <class T>
struct MaximumTask {
    Elements<T, 4> out;
    Elements<T, 4> place_y, place_x;  // may be absent
    Elements<const T, 4> input;
    MeanSampler sampler;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = out.position(i);
        const Region& region = sampler.regions[at[0]];
        Greatest greatest;
        ImagePoint place{-2, -2};  // outside of any image, for a bin without samples
        if (region.image >= 0 && region.image < input.sizes[0]) {
            sampler.for_each_sample(region, at[2], at[3], {0, 0}, [&](const ImagePoint& point) {
                double value = 0;
                for_each_neighbour(point, sampler.height, sampler.width, [&](int64_t y, int64_t x, double share) {
                    value += share * cast<double>(input(region.image, at[1], y, x));
                });
                if (greatest.see(value)) place = point;
            });
        }
        out(at[0], at[1], at[2], at[3]) = cast<T>(greatest.value);
        if (place_y.data != nullptr) place_y(at[0], at[1], at[2], at[3]) = cast<T>(place.y);
        if (place_x.data != nullptr) place_x(at[0], at[1], at[2], at[3]) = cast<T>(place.x);
    }
};

// The samples that were the greatest, each channel its own.
template <class T>
struct PlaceSampler {
    static constexpr bool kForAllChannels = false;

    Elements<const T, 4> place_y, place_x;
    const Region* regions;
    int64_t height, width;

    DIOPI_HD int64_t image(int64_t region) const { return regions[region].image; }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t region, int64_t channel, int64_t row, int64_t column, F&& f) const {
        const ImagePoint point{cast<double>(place_y(region, channel, row, column)),
                               cast<double>(place_x(region, channel, row, column))};
        for_each_neighbour(point, height, width, f);
    }
};

}  // namespace

diopiError_t diopiRoiAlign(Context ctx, Tensor out, ConstTensor input, ConstTensor rois, double spatial_scale,
                           int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const RoiForm form = upright(pooled_height, pooled_width, sampling_ratio, spatial_scale, aligned);
        pool_regions(ctx, pooled_view(out, "out", rois, images, pooled_height, pooled_width), images,
                     mean_sampler(ctx, images, rois, form));
    });
}

diopiError_t diopiRoiAlignBackward(Context ctx, Tensor out, ConstTensor grad, ConstTensor rois, double spatial_scale,
                                   int64_t pooled_height, int64_t pooled_width, int64_t, int64_t, int64_t, int64_t,
                                   int64_t sampling_ratio, bool aligned) {
    return guarded([&] {
        const TensorView images = images_view(out, "out");
        const RoiForm form = upright(pooled_height, pooled_width, sampling_ratio, spatial_scale, aligned);
        spread_regions(ctx, images, Target::overwritten,
                       pooled_view(grad, "grad", rois, images, pooled_height, pooled_width),
                       mean_sampler(ctx, images, rois, form));
    });
}

diopiError_t diopiRoiAlignMmcv(Context ctx, Tensor output, Tensor argmax_y, Tensor argmax_x, ConstTensor input,
                               ConstTensor rois, int64_t aligned_height, int64_t aligned_width, int64_t sampling_ratio,
                               int64_t pool_mode, float spatial_scale, bool aligned) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const TensorView result = pooled_view(output, "output", rois, images, aligned_height, aligned_width);
        const RoiForm form = upright(aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned);
        const MeanSampler sampler = mean_sampler(ctx, images, rois, form);
        require(pool_mode == 0 || pool_mode == 1, "'pool_mode' is %lld, expected 0 or 1", pool_mode);
        const TensorView places[] = {view(argmax_y), view(argmax_x)};
        for (const TensorView& place : places) {
            const bool unused = pool_mode == 1 && place.numel == 0;  // mmcv gives empty tensors
            if (place && !unused) require_same_sizes(place, result, "the places", "output");
        }
        if (pool_mode == 1) {
            pool_regions(ctx, result, images, sampler);
            for (const TensorView& place : places) {
                if (place) fill_zero(ctx, place);
            }
            return;
        }
        dispatch<Float>(result.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            MaximumTask<T> task{
                elements_of<T, 4>(result, "output"), {}, {}, elements_of<const T, 4>(images, "input"), sampler};
            if (places[0]) task.place_y = elements_of<T, 4>(places[0], "argmax_y");
            if (places[1]) task.place_x = elements_of<T, 4>(places[1], "argmax_x");
            for_each(ctx, result.numel, task);
        });
    });
}

diopiError_t diopiRoiAlignBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor rois,
                                       ConstTensor argmax_y, ConstTensor argmax_x, int64_t aligned_height,
                                       int64_t aligned_width, int64_t sampling_ratio, int64_t pool_mode,
                                       float spatial_scale, bool aligned) {
    return guarded([&] {
        const TensorView images = images_view(grad_input, "grad_input");
        const TensorView grads = pooled_view(grad_output, "grad_output", rois, images, aligned_height, aligned_width);
        const RoiForm form = upright(aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned);
        const MeanSampler mean = mean_sampler(ctx, images, rois, form);
        if (pool_mode == 1) {
            spread_regions(ctx, images, Target::overwritten, grads, mean);
            return;
        }
        const TensorView place_y = pooled_view(argmax_y, "argmax_y", rois, images, aligned_height, aligned_width);
        const TensorView place_x = pooled_view(argmax_x, "argmax_x", rois, images, aligned_height, aligned_width);
        dispatch<Float>(place_y.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const PlaceSampler<T> sampler{elements_of<const T, 4>(place_y, "argmax_y"),
                                          elements_of<const T, 4>(place_x, "argmax_x"), mean.regions, mean.height,
                                          mean.width};
            spread_regions(ctx, images, Target::overwritten, grads, sampler);
        });
    });
}

}  // namespace impl::portable
