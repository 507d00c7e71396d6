// Points in the cells of boxes in space: their features pooled cell by cell, and the gradient.
#include <diopi/diopirt.h>

#include "boxes.h"
#include "copy/slices.h"
#include "space/bilinear.h"
#include "space/element.h"
#include "space_box.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The cell of a box that each point lies in, or -1.
struct CellTask {
    int32_t* cells;  // [boxes, points]
    Boxes boxes, points;
    int64_t counts[3];

    DIOPI_HD void operator()(int64_t i) const {
        const SpaceBox box{boxes[i / points.count]};
        double place[3];
        box.place(points[i % points.count], place);
        cells[i] = -1;
        if (!box.holds(place)) return;
        int64_t cell = 0;
        for (int d = 0; d < 3; ++d) {
            const double from_corner = place[d] + (d < 2 ? box.numbers[3 + d] / 2 : 0);
            const double part = math::floor(from_corner / box.numbers[3 + d] * counts[d]);
            const auto last = static_cast<double>(counts[d] - 1);
            cell = cell * counts[d] + static_cast<int64_t>(part > last ? last : part > 0 ? part : 0);
        }
        cells[i] = static_cast<int32_t>(cell);
    }
};

// One box notes its points in their order, as many to a cell as it has room for.
struct NoteTask {
    Elements<int32_t, 5> noted;  // [boxes, x, y, z, the number of points and the points]
    const int32_t* cells;
    int64_t points;

    DIOPI_HD int32_t& note(int64_t box, int64_t cell, int64_t at) const {
        const int64_t yz = cell / noted.sizes[3];
        return noted(box, yz / noted.sizes[2], yz % noted.sizes[2], cell % noted.sizes[3], at);
    }

    DIOPI_HD void operator()(int64_t box) const {
        for (int64_t point = 0; point < points; ++point) {
            const int32_t cell = cells[box * points + point];
            if (cell < 0) continue;
            int32_t& count = note(box, cell, 0);
            if (count < 0 || count + 1 >= noted.sizes[4]) continue;
            note(box, cell, ++count) = static_cast<int32_t>(point);
        }
    }
};

// One channel of one cell. An empty cell keeps its value.
template <class T>
struct CellPoolTask {
    Elements<T, 5> pooled;
    Elements<int32_t, 5> argmax;
    Elements<const int32_t, 5> noted;
    Elements<const T, 2> features;
    bool mean;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<5> at = pooled.position(i);
        const int32_t count = noted(at[0], at[1], at[2], at[3], 0);
        Greatest greatest;
        double sum = 0;
        int32_t place = -1;
        for (int32_t k = 1; k <= count; ++k) {
            const int32_t point = noted(at[0], at[1], at[2], at[3], k);
            const auto value = cast<double>(features(point, at[4]));
            sum += value;
            if (greatest.see(value)) place = point;
        }
        argmax(at[0], at[1], at[2], at[3], at[4]) = mean ? -1 : place;
        if (count > 0) pooled(at[0], at[1], at[2], at[3], at[4]) = cast<T>(mean ? sum / count : greatest.value);
    }
};

// One channel of all points walks the cells in order, so that sums do not depend on timing.
template <class T>
struct CellSpreadTask {
    Elements<T, 2> sums;
    Elements<const T, 5> grad_output;
    Elements<const int32_t, 5> noted, argmax;
    bool mean;

    DIOPI_HD void operator()(int64_t channel) const {
        const int64_t cells = noted.sizes[0] * noted.sizes[1] * noted.sizes[2] * noted.sizes[3];
        for (int64_t cell = 0; cell < cells; ++cell) {
            const Position<5> at = noted.position(cell * noted.sizes[4]);
            const T grad = grad_output(at[0], at[1], at[2], at[3], channel);
            if (mean) {
                const int32_t count = noted(at[0], at[1], at[2], at[3], 0);
                for (int32_t k = 1; k <= count; ++k)
                    sums(noted(at[0], at[1], at[2], at[3], k), channel) += grad / count;
            } else {
                const int32_t point = argmax(at[0], at[1], at[2], at[3], channel);
                if (point >= 0) sums(point, channel) += grad;
            }
        }
    }
};

bool is_mean(int64_t pool_method) {
    require(pool_method == 0 || pool_method == 1, "'pool_method' is %lld, expected 0 or 1", pool_method);
    return pool_method == 1;
}

}  // namespace

diopiError_t diopiRoiawarePool3dMmcv(Context ctx, Tensor argmax, Tensor pts_idx_of_voxels, Tensor pooled_features,
                                     ConstTensor rois, ConstTensor pts, ConstTensor pts_feature, int64_t pool_method) {
    return guarded([&] {
        const bool mean = is_mean(pool_method);
        const TensorView pooled = required_view(pooled_features, "pooled_features");
        const TensorView notes = required_view(pts_idx_of_voxels, "pts_idx_of_voxels");
        const auto places = elements_of<int32_t, 5>(argmax, "argmax");
        const auto noted = elements_of<int32_t, 5>(notes, "pts_idx_of_voxels");
        const Boxes boxes = boxes_of(ctx, rois, "rois", 7), points = boxes_of(ctx, pts, "pts", 3);
        require(noted.sizes[0] == boxes.count && noted.sizes[4] > 0, "'pts_idx_of_voxels' has no room for all boxes");
        auto* cells = workspace_of<int32_t>(ctx, boxes.count * points.count);
        for_each(ctx, boxes.count * points.count,
                 CellTask{cells, boxes, points, {noted.sizes[1], noted.sizes[2], noted.sizes[3]}});
        for_each(ctx, boxes.count, NoteTask{noted, cells, points.count});
        for_each_typed<Float, CellPoolTask>(ctx, pooled.dtype, pooled.numel, Argument{pooled, "pooled_features"},
                                            places, elements_of<const int32_t, 5>(notes, "pts_idx_of_voxels"),
                                            Argument{pts_feature, "pts_feature"}, mean);
    });
}

diopiError_t diopiRoiawarePool3dBackwardMmcv(Context ctx, Tensor grad_in, ConstTensor pts_idx_of_voxels,
                                             ConstTensor argmax, ConstTensor grad_out, int64_t pool_method) {
    return guarded([&] {
        const bool mean = is_mean(pool_method);
        const TensorView result = required_view(grad_in, "grad_in");
        require(result.ndim == 2, "'grad_in' has %d dimensions, expected 2", result.ndim);
        const TensorView sums = converted(ctx, result, sum_dtype(result.dtype));
        const TensorView grads = converted(ctx, required_view(grad_out, "grad_out"), sums.dtype);
        const auto noted = elements_of<const int32_t, 5>(pts_idx_of_voxels, "pts_idx_of_voxels");
        const auto places = elements_of<const int32_t, 5>(argmax, "argmax");
        for_each_typed<Types<float, double>, CellSpreadTask>(ctx, sums.dtype, result.sizes[1],
                                                             Argument{sums, "grad_in"}, Argument{grads, "grad_out"},
                                                             noted, places, mean);
        copy_elements(ctx, result, sums);
    });
}

}  // namespace impl::portable
