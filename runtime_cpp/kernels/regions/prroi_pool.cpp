// Regions pooled by the exact mean of the image, continued bilinearly: each pixel counts by the integral of its hat,
// the function that falls from one at the pixel to zero at its neighbours.
#include <diopi/diopirt.h>

#include "regions.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

DIOPI_HD inline double hat(double t) { return math::max(0.0, 1 - math::abs(t)); }

// From minus infinity to t.
DIOPI_HD inline double hat_integral(double t) {
    const double u = math::clamp(t, -1.0, 1.0);
    return u < 0 ? (1 + u) * (1 + u) / 2 : 1 - (1 - u) * (1 - u) / 2;
}

// One axis of one bin.
struct Interval {
    double begin, end;

    // The pixels whose hats reach into the bin.
    DIOPI_HD int64_t first() const { return begin < 0 ? 0 : static_cast<int64_t>(math::floor(begin)); }
    DIOPI_HD int64_t last(int64_t length) const {
        return end > static_cast<double>(length - 1) ? length - 1 : static_cast<int64_t>(math::ceil(end));
    }
    DIOPI_HD double weight(int64_t pixel) const { return hat_integral(end - pixel) - hat_integral(begin - pixel); }
};

// One axis of a region.
struct Side {
    double begin, size;  // size: of one bin
    DIOPI_HD Interval bin(int64_t k) const { return {begin + k * size, begin + (k + 1) * size}; }
};

struct IntegralSampler {
    static constexpr bool kForAllChannels = true;

    Boxes rois;
    double scale;
    int64_t bins[2];
    int64_t sizes[2];  // of an image

    DIOPI_HD int64_t image(int64_t region) const { return static_cast<int64_t>(rois[region][0]); }

    // Axis 0 is y, axis 1 is x.
    DIOPI_HD Side side(int64_t region, int axis) const {
        const double* corners = rois[region] + 1;
        const double begin = corners[1 - axis] * scale, end = corners[3 - axis] * scale;
        return {begin, math::max(end - begin, 0.0) / bins[axis]};
    }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t region, int64_t, int64_t row, int64_t column, F&& f) const {
        const Side down = side(region, 0), across = side(region, 1);
        const Interval rows = down.bin(row), columns = across.bin(column);
        const double area = down.size * across.size;
        if (!(area > 0)) return;
        const int64_t bottom = rows.last(sizes[0]), right = columns.last(sizes[1]);
        for (int64_t y = rows.first(); y <= bottom; ++y) {
            for (int64_t x = columns.first(); x <= right; ++x) f(y, x, rows.weight(y) * columns.weight(x) / area);
        }
    }
};

IntegralSampler integral_sampler(Context ctx, const TensorView& image, ConstTensor rois, int64_t bins_down,
                                 int64_t bins_across, double scale) {
    require(bins_down > 0 && bins_across > 0, "a region is cut into %lld by %lld bins", bins_down, bins_across);
    return {boxes_of(ctx, rois, "rois", 5), scale, {bins_down, bins_across}, {image.sizes[2], image.sizes[3]}};
}

// One number of one roi: 1 and 2 are x and y of the first corner, 3 and 4 those of the last.
struct CornerGradTask {
    Elements<float, 2> grad_rois;
    Elements<const float, 4> grad_output, input;
    IntegralSampler sampler;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<2> at = grad_rois.position(i);
        const Side down = sampler.side(at[0], 0), across = sampler.side(at[0], 1);
        const bool known = sampler.image(at[0]) >= 0 && sampler.image(at[0]) < input.sizes[0];
        double total = 0;
        if (at[1] > 0 && known && down.size * across.size > 0) {
            for (int64_t row = 0; row < sampler.bins[0]; ++row) {
                for (int64_t column = 0; column < sampler.bins[1]; ++column)
                    total += bin_slope(at[0], at[1], down, across, row, column);
            }
        }
        grad_rois(at[0], at[1]) = static_cast<float>(total * sampler.scale);
    }

    DIOPI_HD double bin_slope(int64_t region, int64_t number, const Side& down, const Side& across, int64_t row,
                              int64_t column) const {
        const Interval rows = down.bin(row), columns = across.bin(column);
        const int64_t bottom = rows.last(input.sizes[2]), right = columns.last(input.sizes[3]);
        const bool along_x = number % 2 == 1, last_corner = number > 2;
        double total = 0;
        for (int64_t y = rows.first(); y <= bottom; ++y) {
            const double share_y =
                along_x ? rows.weight(y) / down.size : slope(down, row, sampler.bins[0], last_corner, y);
            for (int64_t x = columns.first(); x <= right; ++x) {
                const double share_x =
                    along_x ? slope(across, column, sampler.bins[1], last_corner, x) : columns.weight(x) / across.size;
                double value = 0;
                for (int64_t c = 0; c < input.sizes[1]; ++c) {
                    value += static_cast<double>(grad_output(region, c, row, column)) *
                             input(sampler.image(region), c, y, x);
                }
                total += value * share_y * share_x;
            }
        }
        return total;
    }

    // The derivative of a pixel's share in the mean of bin k by the begin or the end of its side.
    DIOPI_HD static double slope(const Side& side, int64_t k, int64_t bins, bool by_end, int64_t pixel) {
        const Interval interval = side.bin(k);
        const double lower = static_cast<double>(k) / bins, upper = static_cast<double>(k + 1) / bins;
        const double begins = hat(interval.begin - pixel) * (by_end ? lower : 1 - lower);
        const double ends = hat(interval.end - pixel) * (by_end ? upper : 1 - upper);
        const double growth = (by_end ? 1.0 : -1.0) / bins / side.size;
        return (ends - begins - interval.weight(pixel) * growth) / side.size;
    }
};

}  // namespace

diopiError_t diopiPrroiPoolMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor rois, int64_t pooled_height,
                                int64_t pooled_width, float spatial_scale) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        pool_regions(ctx, pooled_view(output, "output", rois, images, pooled_height, pooled_width), images,
                     integral_sampler(ctx, images, rois, pooled_height, pooled_width, spatial_scale));
    });
}

diopiError_t diopiPrroiPoolbackwardMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor rois,
                                        int64_t pooled_height, int64_t pooled_width, float spatial_scale) {
    return guarded([&] {
        const TensorView images = images_view(grad_input, "grad_input");
        spread_regions(ctx, images, Target::overwritten,
                       pooled_view(grad_output, "grad_output", rois, images, pooled_height, pooled_width),
                       integral_sampler(ctx, images, rois, pooled_height, pooled_width, spatial_scale));
    });
}

// The mean itself follows from the image: `output` is not needed.
diopiError_t diopiPrroiPoolCoorBackwardMmcv(Context ctx, Tensor grad_rois, ConstTensor, ConstTensor grad_output,
                                            ConstTensor input, ConstTensor rois, int64_t pooled_height,
                                            int64_t pooled_width, float spatial_scale) {
    return guarded([&] {
        const TensorView images = images_view(input, "input");
        const TensorView grads = pooled_view(grad_output, "grad_output", rois, images, pooled_height, pooled_width);
        const TensorView result = sized_view(grad_rois, "grad_rois", {grads.sizes[0], 5});
        const IntegralSampler sampler = integral_sampler(ctx, images, rois, pooled_height, pooled_width, spatial_scale);
        for_each(ctx, result.numel,
                 CornerGradTask{elements_of<float, 2>(result, "grad_rois"),
                                elements_of<const float, 4>(grads, "grad_output"),
                                elements_of<const float, 4>(images, "input"), sampler});
    });
}

}  // namespace impl::portable
