// Regions of images, cut into bins: each value of a bin is a weighted sum of pixels, which a sampler lists. The sum
// over pixels and its gradient are one loop for all samplers.
//
// A sampler has image(region), the image that a region lies in, for_each_pixel(region, channel, row of bins, column of
// bins, f), which calls f(y, x, weight), and kForAllChannels where the pixels do not depend on the channel.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "boxes/boxes.h"
#include "copy/copy.h"
#include "copy/slices.h"
#include "space/bilinear.h"
#include "space/element.h"
#include "space/runs.h"

namespace diopi::kernels {

// Channels that one task works on together: a CPU finds the pixels once for all of them.
constexpr int64_t kChannels = kRunLength == 1 ? 1 : 64;

inline int64_t channel_blocks(int64_t channels) { return (channels + kChannels - 1) / kChannels; }

template <class T, class Sampler>
struct PoolTask {
    static_assert(Sampler::kForAllChannels, "channels are pooled together");

    Elements<T, 4> out;          // [regions, channels, rows of bins, columns of bins]
    Elements<const T, 4> input;  // [images, channels, height, width]
    Sampler sampler;
    int64_t blocks;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t sizes[] = {out.sizes[0], blocks, out.sizes[2], out.sizes[3]};
        const Position<4> at = position_in<4>(sizes, i);
        const int64_t image = sampler.image(at[0]), first = at[1] * kChannels;
        const int64_t width = out.sizes[1] - first < kChannels ? out.sizes[1] - first : kChannels;
        double sums[kChannels] = {};
        if (image >= 0 && image < input.sizes[0]) {
            sampler.for_each_pixel(at[0], first, at[2], at[3], [&](int64_t y, int64_t x, double weight) {
                const T* values = &input(image, first, y, x);
                for (int64_t c = 0; c < width; ++c) sums[c] += weight * cast<double>(values[c * input.strides[1]]);
            });
        }
        for (int64_t c = 0; c < width; ++c) out(at[0], first + c, at[2], at[3]) = cast<T>(sums[c]);
    }
};

template <class Sampler>
void pool_regions(Context ctx, const TensorView& out, const TensorView& input, const Sampler& sampler) {
    if (out.numel == 0) return;
    const int64_t blocks = channel_blocks(out.sizes[1]);
    dispatch<Float>(out.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, out.numel / out.sizes[1] * blocks,
                 PoolTask<T, Sampler>{elements_of<T, 4>(out, "output"), elements_of<const T, 4>(input, "input"),
                                      sampler, blocks});
    });
}

// The planes of a task walk all regions in order: no other task adds to them, so that sums do not depend on timing.
template <class T, class Sampler>
struct SpreadTask {
    Elements<T, 4> sums;
    Elements<const T, 4> grad_output;
    Sampler sampler;
    int64_t blocks;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t image = i / blocks, first = i % blocks * kChannels;
        const int64_t last = first + kChannels < sums.sizes[1] ? first + kChannels : sums.sizes[1];
        const int64_t width = Sampler::kForAllChannels ? last - first : 1;
        for (int64_t region = 0; region < grad_output.sizes[0]; ++region) {
            if (sampler.image(region) != image) continue;
            for (int64_t row = 0; row < grad_output.sizes[2]; ++row) {
                for (int64_t column = 0; column < grad_output.sizes[3]; ++column) {
                    for (int64_t c = first; c < last; c += width) spread(region, image, c, width, row, column);
                }
            }
        }
    }

    DIOPI_HD void spread(int64_t region, int64_t image, int64_t first, int64_t width, int64_t row,
                         int64_t column) const {
        const T* grads = &grad_output(region, first, row, column);
        sampler.for_each_pixel(region, first, row, column, [&](int64_t y, int64_t x, double weight) {
            T* targets = &sums(image, first, y, x);
            for (int64_t c = 0; c < width; ++c) {
                T& sum = targets[c * sums.strides[1]];
                sum = static_cast<T>(sum + weight * grads[c * grad_output.strides[1]]);
            }
        });
    }
};

enum class Target { overwritten, added_to };

template <class Sampler>
void spread_regions(Context ctx, const TensorView& grad_input, Target target, const TensorView& grad_output,
                    const Sampler& sampler) {
    if (!is_float_dtype(grad_input.dtype)) fail_dtype(grad_input.dtype);
    const TensorView sums = converted(ctx, grad_input, sum_dtype(grad_input.dtype));
    const TensorView grads = converted(ctx, grad_output, sums.dtype);
    if (target == Target::overwritten) fill_zero(ctx, sums);
    const int64_t blocks = channel_blocks(sums.sizes[1]);
    dispatch<Types<float, double>>(sums.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, sums.numel == 0 ? 0 : sums.sizes[0] * blocks,
                 SpreadTask<T, Sampler>{elements_of<T, 4>(sums, "grad_input"),
                                        elements_of<const T, 4>(grads, "grad_output"), sampler, blocks});
    });
    copy_elements(ctx, grad_input, sums);
}

// The images that regions are cut from.
inline TensorView images_view(ConstTensor handle, const char* name) {
    const TensorView images = required_view(handle, name);
    require(images.ndim == 4, "'%s' has %d dimensions, expected 4", name, images.ndim);
    return images;
}

// What became of the regions, or its gradient: one value for each roi, channel and bin.
inline TensorView pooled_view(ConstTensor handle, const char* name, ConstTensor rois, const TensorView& images,
                              int64_t bins_down, int64_t bins_across) {
    const TensorView rows = required_view(rois, "rois");
    require(rows.ndim == 2, "'rois' has %d dimensions, expected 2", rows.ndim);
    return sized_view(handle, name, {rows.sizes[0], images.sizes[1], bins_down, bins_across});
}

// A box of an image with the grid of samples that each of its bins takes.
struct Region {
    int64_t image;
    double top, left;  // of the first bin, in directions that are those of the box
    double bin_height, bin_width;
    int64_t rows, columns;  // samples of one bin
    ImagePoint origin;      // of these directions
    double cos, sin;        // how they are turned

    // The middle of sample (i, j) of bin (row, column).
    DIOPI_HD ImagePoint sample(int64_t row, int64_t column, int64_t i, int64_t j) const {
        const double down = top + (row + (i + 0.5) / rows) * bin_height;
        const double across = left + (column + (j + 0.5) / columns) * bin_width;
        return {down * cos - across * sin + origin.y, down * sin + across * cos + origin.x};
    }
};

// How a row of rois becomes a region: image, x1, y1, x2, y2, or if `rotated` image, x, y, width, height, angle.
struct RoiForm {
    int64_t bins_down, bins_across;
    int64_t ratio;  // samples along each side of a bin; as many as it has pixels if not positive
    double scale;
    double shift;
    double least;  // of height and width
    bool rotated;
    bool clockwise;

    DIOPI_HD int64_t samples(double size) const {
        if (ratio > 0) return ratio;
        const double fit = math::ceil(size);
        return fit > 0 ? static_cast<int64_t>(fit) : 0;
    }

    DIOPI_HD Region region(const double* roi) const {
        Region result{};
        result.image = static_cast<int64_t>(roi[0]);
        result.cos = 1;
        double first = roi[1] * scale - shift, second = roi[2] * scale - shift;
        double width = rotated ? roi[3] * scale : roi[3] * scale - shift - first;
        double height = rotated ? roi[4] * scale : roi[4] * scale - shift - second;
        width = width < least ? least : width;
        height = height < least ? least : height;
        result.left = rotated ? -width / 2 : first;
        result.top = rotated ? -height / 2 : second;
        if (rotated) {
            const double angle = clockwise ? -roi[5] : roi[5];
            result.origin = {second, first};
            result.cos = math::cos(angle);
            result.sin = math::sin(angle);
        }
        result.bin_height = height / bins_down;
        result.bin_width = width / bins_across;
        result.rows = samples(result.bin_height);
        result.columns = samples(result.bin_width);
        return result;
    }
};

struct RegionTask {
    Boxes rois;
    RoiForm form;
    Region* regions;
    DIOPI_HD void operator()(int64_t i) const { regions[i] = form.region(rois[i]); }
};

inline const Region* regions_of(Context ctx, const Boxes& rois, const RoiForm& form) {
    require(form.bins_down > 0 && form.bins_across > 0, "a region is cut into %lld by %lld bins", form.bins_down,
            form.bins_across);
    auto* regions = workspace_of<Region>(ctx, rois.count);
    for_each(ctx, rois.count, RegionTask{rois, form, regions});
    return regions;
}

// The mean of bilinear samples.
struct MeanSampler {
    static constexpr bool kForAllChannels = true;

    const Region* regions;
    int64_t height, width;  // of an image

    DIOPI_HD int64_t image(int64_t region) const { return regions[region].image; }

    template <class F>
    DIOPI_HD void for_each_pixel(int64_t number, int64_t, int64_t row, int64_t column, F&& f) const {
        mean_of_samples(regions[number], row, column, {0, 0}, f);
    }

    template <class F>
    DIOPI_HD void mean_of_samples(const Region& region, int64_t row, int64_t column, const ImagePoint& moved,
                                  F&& f) const {
        const double weight = 1.0 / (region.rows * region.columns);
        for_each_sample(region, row, column, moved, [&](const ImagePoint& point) {
            for_each_neighbour(point, height, width,
                               [&](int64_t y, int64_t x, double share) { f(y, x, share * weight); });
        });
    }

    template <class F>
    DIOPI_HD static void for_each_sample(const Region& region, int64_t row, int64_t column, const ImagePoint& moved,
                                         F&& f) {
        for (int64_t i = 0; i < region.rows; ++i) {
            for (int64_t j = 0; j < region.columns; ++j) {
                const ImagePoint point = region.sample(row, column, i, j);
                f(ImagePoint{point.y + moved.y, point.x + moved.x});
            }
        }
    }
};

inline MeanSampler mean_sampler(Context ctx, const TensorView& image, ConstTensor rois, const RoiForm& form) {
    const Boxes boxes = boxes_of(ctx, rois, "rois", form.rotated ? 6 : 5);
    return {regions_of(ctx, boxes, form), image.sizes[2], image.sizes[3]};
}

}  // namespace diopi::kernels
