// Points in boxes in space: which box a point lies in, and which points a box holds.
#include <diopi/diopirt.h>

#include "boxes.h"
#include "space/element.h"
#include "space_box.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// [batch, boxes, 7] and [batch, points, 3].
struct Scene {
    Boxes boxes, points;
    int64_t boxes_of_batch, points_of_batch;

    DIOPI_HD bool holds(int64_t batch, int64_t box, int64_t point) const {
        return SpaceBox{boxes[batch * boxes_of_batch + box]}.holds_point(points[batch * points_of_batch + point]);
    }
};

Scene scene_of(Context ctx, ConstTensor boxes, ConstTensor points) {
    const TensorView box_rows = required_view(boxes, "boxes"), point_rows = required_view(points, "points");
    require(box_rows.ndim == 3 && point_rows.ndim == 3 && box_rows.sizes[0] == point_rows.sizes[0],
            "boxes and points are no batches of equal size");
    return {boxes_of(ctx, boxes, "boxes", 7), boxes_of(ctx, points, "points", 3), box_rows.sizes[1],
            point_rows.sizes[1]};
}

struct FirstBoxTask {
    Elements<int32_t, 2> out;
    Scene scene;
    DIOPI_HD void operator()(int64_t i) const {
        const Position<2> at = out.position(i);
        int64_t box = 0;
        while (box < scene.boxes_of_batch && !scene.holds(at[0], box, at[1])) ++box;
        out(at[0], at[1]) = box < scene.boxes_of_batch ? static_cast<int32_t>(box) : -1;
    }
};

struct AllBoxesTask {
    Elements<int32_t, 3> out;
    Scene scene;
    DIOPI_HD void operator()(int64_t i) const {
        const Position<3> at = out.position(i);
        out(at[0], at[1], at[2]) = scene.holds(at[0], at[2], at[1]) ? 1 : 0;
    }
};

// The first points in one box, as many as the pooled features have room for.
struct CollectTask {
    Elements<int32_t, 2> empty;
    Scene scene;
    int64_t* collected;  // [batch, boxes, room and the number of points]
    int64_t room;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<2> at = empty.position(i);
        int64_t* points = collected + i * (room + 1);
        int64_t count = 0;
        bool any = false;
        for (int64_t point = 0; point < scene.points_of_batch && (count < room || !any); ++point) {
            if (!scene.holds(at[0], at[1], point)) continue;
            any = true;
            if (count < room) points[count++] = point;
        }
        points[room] = count;
        empty(at[0], at[1]) = any ? 0 : 1;
    }
};

template <class T>
struct RepeatTask {
    Elements<T, 4> pooled;  // [batch, boxes, room, coordinates and features]
    Elements<const T, 3> coordinates, features;
    const int64_t* collected;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = pooled.position(i);
        const int64_t* points = collected + (at[0] * pooled.sizes[1] + at[1]) * (pooled.sizes[2] + 1);
        const int64_t count = points[pooled.sizes[2]];
        if (count == 0) return;
        const int64_t point = points[at[2] % count];
        pooled(at[0], at[1], at[2], at[3]) =
            at[3] < 3 ? coordinates(at[0], point, at[3]) : features(at[0], point, at[3] - 3);
    }
};

}  // namespace

diopiError_t diopiPointsInBoxesPartMmcv(Context ctx, Tensor box_idx_of_points, ConstTensor boxes, ConstTensor pts) {
    return guarded([&] {
        const TensorView result = required_view(box_idx_of_points, "box_idx_of_points");
        for_each(ctx, result.numel,
                 FirstBoxTask{elements_of<int32_t, 2>(result, "box_idx_of_points"), scene_of(ctx, boxes, pts)});
    });
}

diopiError_t diopiPointsInBoxesAllMmcv(Context ctx, Tensor box_idx_of_points, ConstTensor boxes, ConstTensor pts) {
    return guarded([&] {
        const TensorView result = required_view(box_idx_of_points, "box_idx_of_points");
        for_each(ctx, result.numel,
                 AllBoxesTask{elements_of<int32_t, 3>(result, "box_idx_of_points"), scene_of(ctx, boxes, pts)});
    });
}

diopiError_t diopiRoipointPool3dMmcv(Context ctx, Tensor pooled_features, Tensor pooled_empty_flag, ConstTensor xyz,
                                     ConstTensor boxes3d, ConstTensor pts_feature) {
    return guarded([&] {
        const TensorView pooled = required_view(pooled_features, "pooled_features");
        const TensorView flags = required_view(pooled_empty_flag, "pooled_empty_flag");
        require(pooled.ndim == 4, "'pooled_features' has %d dimensions, expected 4", pooled.ndim);
        const int64_t room = pooled.sizes[2];
        auto* collected = workspace_of<int64_t>(ctx, flags.numel * (room + 1));
        for_each(ctx, flags.numel,
                 CollectTask{elements_of<int32_t, 2>(flags, "pooled_empty_flag"), scene_of(ctx, boxes3d, xyz),
                             collected, room});
        for_each_typed<Float, RepeatTask>(ctx, pooled.dtype, pooled.numel, Argument{pooled, "pooled_features"},
                                          Argument{xyz, "xyz"}, Argument{pts_feature, "pts_feature"}, collected);
    });
}

}  // namespace impl::portable
