// Regions whose bins are moved by offsets, pooled from bilinear samples, and the gradient of the offsets.
#include <diopi/diopirt.h>

#include "core/view.h"
#include "regions.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct DeformedSampler {
    static constexpr bool kForAllChannels = true;

    MeanSampler mean;
    const double* offset;  // [regions, x and y, rows of bins, columns of bins], or null for none
    int64_t bins_down, bins_across;
    double gamma;

    DIOPI_HD int64_t image(int64_t region) const { return mean.image(region); }

    // How far an offset of one moves a bin.
    DIOPI_HD ImagePoint reach(const Region& region) const {
        return {gamma * region.bin_height * bins_down, gamma * region.bin_width * bins_across};
    }

    DIOPI_HD int64_t offset_index(int64_t number, int64_t axis, int64_t row, int64_t column) const {
        return ((number * 2 + axis) * bins_down + row) * bins_across + column;
    }

    DIOPI_HD ImagePoint moved(int64_t number, int64_t row, int64_t column) const {
        if (offset == nullptr) return {0, 0};
        const ImagePoint whole = reach(mean.regions[number]);
        return {whole.y * offset[offset_index(number, 1, row, column)],
                whole.x * offset[offset_index(number, 0, row, column)]};
    }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t number, int64_t, int64_t row, int64_t column, F&& f) const {
        mean.mean_of_samples(mean.regions[number], row, column, moved(number, row, column), f);
    }
};

DeformedSampler deformed_sampler(Context ctx, const TensorView& image, ConstTensor rois, ConstTensor offset,
                                 const RoiForm& form, double gamma) {
    DeformedSampler sampler{mean_sampler(ctx, image, rois, form), nullptr, form.bins_down, form.bins_across, gamma};
    const TensorView offsets = view(offset);
    if (!offsets || offsets.numel == 0) return sampler;
    const int64_t count = boxes_of(ctx, rois, "rois", 5).count;
    require(offsets.numel == count * 2 * form.bins_down * form.bins_across,
            "'offset' has %lld elements, expected two for each bin", offsets.numel);
    sampler.offset = contiguous_as(ctx, offsets, diopi_dtype_float64).as<double>();
    return sampler;
}

RoiForm centred(int64_t bins_down, int64_t bins_across, int64_t ratio, double scale) {
    return {bins_down, bins_across, ratio, scale, 0.5, -math::infinity<double>, false, false};
}

// One bin's offset along y and x moves its samples in all channels.
template <class T>
struct OffsetGradTask {
    Elements<T, 4> grad_offset;
    Elements<const T, 4> grad_output, input;
    DeformedSampler sampler;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t column = i % sampler.bins_across, row = i / sampler.bins_across % sampler.bins_down;
        const int64_t number = i / sampler.bins_across / sampler.bins_down;
        const Region& region = sampler.mean.regions[number];
        double along_y = 0, along_x = 0;
        const bool known = region.image >= 0 && region.image < input.sizes[0];
        for (int64_t channel = 0; known && channel < input.sizes[1]; ++channel) {
            const auto grad = cast<double>(grad_output(number, channel, row, column));
            const auto add_slope = [&](int64_t y, int64_t x, double slope_y, double slope_x) {
                const double value = grad * cast<double>(input(region.image, channel, y, x));
                along_y += slope_y * value;
                along_x += slope_x * value;
            };
            sampler.mean.for_each_sample(region, row, column, sampler.moved(number, row, column),
                                         [&](const ImagePoint& point) {
                                             for_each_slope(point, sampler.mean.height, sampler.mean.width, add_slope);
                                         });
        }
        const int64_t samples = region.rows * region.columns;
        const ImagePoint whole = sampler.reach(region);
        grad_offset(number, 0, row, column) = cast<T>(samples == 0 ? 0.0 : along_x * whole.x / samples);
        grad_offset(number, 1, row, column) = cast<T>(samples == 0 ? 0.0 : along_y * whole.y / samples);
    }
};

}  // namespace

diopiError_t diopiDeformRoiPoolMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor rois, ConstTensor offset,
                                    int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                                    float spatial_scale, float gamma) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const RoiForm form = centred(pooled_height, pooled_width, sampling_ratio, spatial_scale);
        pool_regions(ctx, pooled_view(output, "output", rois, images, pooled_height, pooled_width), images,
                     deformed_sampler(ctx, images, rois, offset, form, gamma));
    });
}

diopiError_t diopiDeformRoiPoolBackwardMmcv(Context ctx, Tensor grad_input, Tensor grad_offset, ConstTensor grad_output,
                                            ConstTensor input, ConstTensor rois, ConstTensor offset,
                                            int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                                            float spatial_scale, float gamma) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const TensorView grads = pooled_view(grad_output, "grad_output", rois, images, pooled_height, pooled_width);
        const RoiForm form = centred(pooled_height, pooled_width, sampling_ratio, spatial_scale);
        const DeformedSampler sampler = deformed_sampler(ctx, images, rois, offset, form, gamma);
        const TensorView result = required_view(grad_input, "grad_input");
        require_same_sizes(result, images, "grad_input", "input");
        spread_regions(ctx, result, Target::overwritten, grads, sampler);
        const TensorView moves = view(grad_offset);
        if (!moves || moves.numel == 0) return;
        require(sampler.offset != nullptr, "the gradient of an absent 'offset' is asked for");
        require_sizes(moves, "grad_offset", {grads.sizes[0], 2, pooled_height, pooled_width});
        for_each_typed<Float, OffsetGradTask>(ctx, images.dtype, moves.numel / 2, Argument{moves, "grad_offset"},
                                              Argument{grads, "grad_output"}, Argument{images, "input"}, sampler);
    });
}

}  // namespace impl::portable
