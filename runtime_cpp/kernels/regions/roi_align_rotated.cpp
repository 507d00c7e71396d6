// Turned regions pooled from bilinear samples, and channels that turn along with them.
#include <diopi/diopirt.h>

#include "regions.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

RoiForm turned(int64_t bins_down, int64_t bins_across, int64_t ratio, double scale, bool aligned, bool clockwise) {
    return {bins_down, bins_across, ratio, scale, aligned ? 0.5 : 0.0, aligned ? 0.0 : 1.0, true, clockwise};
}

// The channels of a group are orientations: those of each region move on by its angle, in units of their number in a
// full turn, and between two units they are mixed. The gradient moves back.
template <class T>
struct TurnTask {
    Elements<T, 4> out;
    Elements<const T, 4> input;
    Boxes rois;
    int64_t orientations;
    bool back;

    DIOPI_HD void operator()(int64_t i) const {
        constexpr double full = 6.283185307179586;
        const Position<4> at = out.position(i);
        const double turn = rois[at[0]][5] * orientations / full;
        const auto whole = static_cast<int64_t>(math::floor(turn));
        const double share = turn - whole;
        const int64_t near = back ? whole : -whole, far = back ? whole - 1 : 1 - whole;
        const double value = (1 - share) * moved(at, near) + share * moved(at, far);
        out(at[0], at[1], at[2], at[3]) = static_cast<T>(value);
    }

    DIOPI_HD double moved(const Position<4>& at, int64_t steps) const {
        const int64_t orientation = math::remainder(at[1] + steps, orientations);  // groups begin at multiples
        return input(at[0], at[1] - at[1] % orientations + orientation, at[2], at[3]);
    }
};

// A tensor of the regions' shape in which sums are kept, with the channels of `input` turned.
TensorView turned_channels(Context ctx, const TensorView& input, ConstTensor rois, int64_t orientations, bool back) {
    require(orientations > 0 && input.sizes[1] % orientations == 0, "the channels are no groups of %lld orientations",
            orientations);
    const TensorView source = converted(ctx, input, sum_dtype(input.dtype));
    const TensorView result = temporary_like(ctx, source, source.dtype);
    const Boxes boxes = boxes_of(ctx, rois, "rois", 6);
    for_each_typed<Types<float, double>, TurnTask>(ctx, source.dtype, result.numel,
                                                   Argument{result, "the turned channels"},
                                                   Argument{source, "the channels"}, boxes, orientations, back);
    return result;
}

}  // namespace

diopiError_t diopiRoiAlignRotatedMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor rois,
                                      int64_t aligned_height, int64_t aligned_width, int64_t sampling_ratio,
                                      float spatial_scale, bool aligned, bool clockwise) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const RoiForm form = turned(aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise);
        pool_regions(ctx, pooled_view(output, "output", rois, images, aligned_height, aligned_width), images,
                     mean_sampler(ctx, images, rois, form));
    });
}

diopiError_t diopiRoiAlignRotatedBackwardMmcv(Context ctx, Tensor bottom_grad, ConstTensor top_grad, ConstTensor rois,
                                              int64_t aligned_height, int64_t aligned_width, int64_t sampling_ratio,
                                              float spatial_scale, bool aligned, bool clockwise) {
    return guarded([&] {
        const TensorView images = images_view(bottom_grad, "bottom_grad");
        const RoiForm form = turned(aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise);
        spread_regions(ctx, images, Target::added_to,
                       pooled_view(top_grad, "top_grad", rois, images, aligned_height, aligned_width),
                       mean_sampler(ctx, images, rois, form));
    });
}

diopiError_t diopiRiroiAlignRotatedMmcv(Context ctx, Tensor output, ConstTensor features, ConstTensor rois,
                                        int64_t pooled_height, int64_t pooled_width, int64_t num_samples,
                                        int64_t num_orientations, float spatial_scale, bool clockwise) {
    return guarded([&] {
        const TensorView images = images_view(features, "features");
        const TensorView result = pooled_view(output, "output", rois, images, pooled_height, pooled_width);
        const RoiForm form = turned(pooled_height, pooled_width, num_samples, spatial_scale, false, clockwise);
        const TensorView pooled = temporary_like(ctx, result, sum_dtype(result.dtype));
        pool_regions(ctx, pooled, converted(ctx, images, pooled.dtype), mean_sampler(ctx, images, rois, form));
        copy_elements(ctx, result, turned_channels(ctx, pooled, rois, num_orientations, false));
    });
}

diopiError_t diopiRiroiAlignRotatedBackwardMmcv(Context ctx, Tensor bottom_grad, ConstTensor top_grad, ConstTensor rois,
                                                int64_t pooled_height, int64_t pooled_width, int64_t num_samples,
                                                int64_t num_orientations, float spatial_scale, bool clockwise) {
    return guarded([&] {
        const TensorView images = images_view(bottom_grad, "bottom_grad");
        const RoiForm form = turned(pooled_height, pooled_width, num_samples, spatial_scale, false, clockwise);
        const TensorView grads = pooled_view(top_grad, "top_grad", rois, images, pooled_height, pooled_width);
        spread_regions(ctx, images, Target::added_to, turned_channels(ctx, grads, rois, num_orientations, true),
                       mean_sampler(ctx, images, rois, form));
    });
}

}  // namespace impl::portable
