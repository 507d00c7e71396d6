// Boxes and regions of images, as torchvision defines them; ATen has no operators for them.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <diopi/functions.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// All is computed in double, on dense copies.
at::Tensor dense(diopiConstTensorHandle_t handle) { return tensor(handle).to(at::kDouble).contiguous(); }

double overlap(const double* a, const double* b) {
    const double width = std::max(0.0, std::min(a[2], b[2]) - std::max(a[0], b[0]));
    const double height = std::max(0.0, std::min(a[3], b[3]) - std::max(a[1], b[1]));
    const double common = width * height;
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common);
}

// Where a region is read along one side of the image: `count` points in each bin.
struct Side {
    double start;
    double bin;  // the length of one
    int64_t count;
    int64_t pixels;

    Side(double from, double to, int64_t bins, int64_t ratio, int64_t pixels, bool aligned)
        : start(from),
          bin((aligned ? to - from : std::max(to - from, 1.0)) / static_cast<double>(bins)),
          count(ratio > 0 ? ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin)))),
          pixels(pixels) {}

    double point(int64_t at, int64_t i) const {
        return start + (static_cast<double>(at) + (static_cast<double>(i) + 0.5) / static_cast<double>(count)) * bin;
    }
};

// The two pixels around a point and their weights; none for a point more than a pixel outside.
struct Taps {
    int64_t pixel[2];
    double weight[2];

    Taps(double point, int64_t pixels) : pixel{0, 0}, weight{0, 0} {
        if (point < -1 || point > static_cast<double>(pixels)) return;
        const double place = std::clamp(point, 0.0, static_cast<double>(pixels - 1));
        pixel[0] = static_cast<int64_t>(place);
        pixel[1] = std::min(pixel[0] + 1, pixels - 1);
        weight[1] = place - static_cast<double>(pixel[0]);
        weight[0] = 1 - weight[1];
    }
};

struct RoiAlign {
    double scale;
    int64_t pooled_height;
    int64_t pooled_width;
    int64_t ratio;
    bool aligned;
};

// Calls visit(y, x, weight) for each pixel of the image that counts in bin (row, column).
template <class Visit>
void visit_bin(const Side& vertical, const Side& horizontal, int64_t row, int64_t column, const Visit& visit) {
    const double points = static_cast<double>(std::max<int64_t>(1, vertical.count * horizontal.count));
    for (int64_t i = 0; i < vertical.count; ++i) {
        const Taps ys(vertical.point(row, i), vertical.pixels);
        for (int64_t j = 0; j < horizontal.count; ++j) {
            const Taps xs(horizontal.point(column, j), horizontal.pixels);
            for (int corner = 0; corner < 4; ++corner) {
                const int a = corner / 2;
                const int b = corner % 2;
                visit(ys.pixel[a], xs.pixel[b], ys.weight[a] * xs.weight[b] / points);
            }
        }
    }
}

// Calls visit(region, batch, row, column, y, x, weight) for all regions; `image` is [N, C, H, W].
template <class Visit>
void visit_regions(const RoiAlign& r, const at::Tensor& rois, at::IntArrayRef image, const Visit& visit) {
    const double shift = r.aligned ? 0.5 : 0.0;
    for (int64_t k = 0; k < rois.size(0); ++k) {
        const double* roi = rois.const_data_ptr<double>() + 5 * k;
        const auto batch = static_cast<int64_t>(roi[0]);
        if (batch < 0 || batch >= image[0]) throw Failure(diopiErrorOccurred, "a region's image is not there");
        const auto corner = [&](int i) { return roi[i] * r.scale - shift; };
        const Side vertical(corner(2), corner(4), r.pooled_height, r.ratio, image[2], r.aligned);
        const Side horizontal(corner(1), corner(3), r.pooled_width, r.ratio, image[3], r.aligned);
        for (int64_t row = 0; row < r.pooled_height; ++row) {
            for (int64_t column = 0; column < r.pooled_width; ++column) {
                visit_bin(vertical, horizontal, row, column,
                          [&](int64_t y, int64_t x, double weight) { visit(k, batch, row, column, y, x, weight); });
            }
        }
    }
}

}  // namespace

diopiError_t diopiNms(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t boxes,
                      diopiConstTensorHandle_t confidence, double iou_threshold) {
    return guarded([&] {
        const at::Tensor corners = dense(boxes);
        const at::Tensor order = tensor(confidence).argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
        const auto box = [&](int64_t i) { return corners.const_data_ptr<double>() + 4 * i; };
        std::vector<int64_t> kept;
        for (int64_t i = 0; i < order.numel(); ++i) {
            const int64_t candidate = order.const_data_ptr<int64_t>()[i];
            const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t other) {
                return overlap(box(candidate), box(other)) > iou_threshold;
            });
            if (free) kept.push_back(candidate);
        }
        at::Tensor positions = at::empty({static_cast<int64_t>(kept.size())}, at::kLong);
        std::copy(kept.begin(), kept.end(), positions.mutable_data_ptr<int64_t>());
        allocate(ctx, out, positions);
    });
}

diopiError_t diopiRoiAlign(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                           diopiConstTensorHandle_t rois, double spatial_scale, int64_t pooled_height,
                           int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
    return guarded([&] {
        const at::Tensor image = dense(input);
        const RoiAlign align{spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned};
        at::Tensor pooled = at::zeros(tensor(out).sizes(), at::kDouble);
        const auto from = image.accessor<double, 4>();
        auto to = pooled.accessor<double, 4>();
        visit_regions(align, dense(rois), image.sizes(),
                      [&](int64_t k, int64_t n, int64_t row, int64_t column, int64_t y, int64_t x, double weight) {
                          for (int64_t c = 0; c < image.size(1); ++c) {
                              to[k][c][row][column] += weight * from[n][c][y][x];
                          }
                      });
        write(out, pooled);
    });
}

diopiError_t diopiRoiAlignBackward(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t grad,
                                   diopiConstTensorHandle_t rois, double spatial_scale, int64_t pooled_height,
                                   int64_t pooled_width, int64_t batch_size, int64_t channels, int64_t height,
                                   int64_t width, int64_t sampling_ratio, bool aligned) {
    return guarded([&] {
        const at::Tensor pooled = dense(grad);
        const RoiAlign align{spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned};
        at::Tensor image = at::zeros({batch_size, channels, height, width}, at::kDouble);
        const auto from = pooled.accessor<double, 4>();
        auto to = image.accessor<double, 4>();
        visit_regions(align, dense(rois), image.sizes(),
                      [&](int64_t k, int64_t n, int64_t row, int64_t column, int64_t y, int64_t x, double weight) {
                          for (int64_t c = 0; c < channels; ++c) {
                              to[n][c][y][x] += weight * from[k][c][row][column];
                          }
                      });
        write(out, image);
    });
}

}  // namespace impl::torch
