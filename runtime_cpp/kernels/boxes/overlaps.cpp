// Overlaps of boxes, quadrilaterals and convex hulls, and points in polygons: one number for each pair of rows.
#include <diopi/diopirt.h>

#include "boxes.h"
#include "polygon.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// measure(a, b) of all pairs of rows, the second one fastest, or of rows of the same number.
template <class Measure>
struct PairTask {
    TensorView out;
    Space<1> space;
    Boxes first, second;
    bool aligned;
    Measure measure;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t a = aligned ? i : i / second.count, b = aligned ? i : i % second.count;
        store_as(out, space.offset(i), measure(first[a], second[b]));
    }
};

// An argument whose last dimension is a row of `least` numbers or more.
struct Rows {
    ConstTensor handle;
    const char* name;
    int64_t least;
};

template <class Measure>
diopiError_t measure_pairs(Context ctx, Tensor out, const Rows& a, const Rows& b, bool aligned,
                           const Measure& measure) {
    return guarded([&] {
        const Boxes first = boxes_of(ctx, a.handle, a.name, a.least), second = boxes_of(ctx, b.handle, b.name, b.least);
        const TensorView result = required_view(out, "the output");
        require_storable(result);
        require(!aligned || first.count == second.count, "%lld rows are not aligned with %lld", first.count,
                second.count);
        const int64_t pairs = aligned ? first.count : first.count * second.count;
        require(result.numel == pairs, "the output has %lld elements for %lld pairs", result.numel, pairs);
        for_each(ctx, pairs, PairTask<Measure>{result, space_of(result), first, second, aligned, measure});
    });
}

struct UprightRatio {
    double offset;
    bool of_first;

    DIOPI_HD double operator()(const double* a, const double* b) const {
        return upright_overlap(a, b, offset, of_first);
    }
};

struct RotatedRatio {
    bool of_first;
    DIOPI_HD double operator()(const double* a, const double* b) const {
        return overlap(rotated_box(a), rotated_box(b), of_first);
    }
};

struct QuadrilateralRatio {
    bool of_first;
    DIOPI_HD double operator()(const double* a, const double* b) const {
        return overlap(polygon_of(a, 4), polygon_of(b, 4), of_first);
    }
};

struct SharedFromAbove {
    DIOPI_HD double operator()(const double* a, const double* b) const {
        return shared_area(box_from_above(a, true), box_from_above(b, true));
    }
};

struct HullRatio {
    DIOPI_HD double operator()(const double* points, const double* polygon) const {
        return overlap(hull(polygon_of(points, kSetPoints)), polygon_of(polygon, 4), false);
    }
};

struct Holding {
    DIOPI_HD double operator()(const double* point, const double* polygon) const {
        return holds(polygon_of(polygon, 4), point[0], point[1]) ? 1 : 0;
    }
};

}  // namespace

diopiError_t diopiBboxOverlapsMmcv(Context ctx, Tensor ious, ConstTensor bboxes1, ConstTensor bboxes2, int64_t mode,
                                   int64_t offset, bool aligned) {
    return measure_pairs(ctx, ious, {bboxes1, "bboxes1", 4}, {bboxes2, "bboxes2", 4}, aligned,
                         UprightRatio{static_cast<double>(offset), mode == 1});
}

diopiError_t diopiBoxIouRotatedMmcv(Context ctx, Tensor ious, ConstTensor bboxes1, ConstTensor bboxes2, int64_t mode,
                                    bool aligned) {
    return measure_pairs(ctx, ious, {bboxes1, "bboxes1", 5}, {bboxes2, "bboxes2", 5}, aligned, RotatedRatio{mode == 1});
}

diopiError_t diopiBoxIouQuadriMmcv(Context ctx, Tensor ious, ConstTensor bboxes1, ConstTensor bboxes2, int64_t mode,
                                   bool aligned) {
    return measure_pairs(ctx, ious, {bboxes1, "bboxes1", 8}, {bboxes2, "bboxes2", 8}, aligned,
                         QuadrilateralRatio{mode == 1});
}

diopiError_t diopiIou3dBoxesOverlapBevMmcv(Context ctx, Tensor ans_overlap, ConstTensor boxes_a, ConstTensor boxes_b) {
    return measure_pairs(ctx, ans_overlap, {boxes_a, "boxes_a", 7}, {boxes_b, "boxes_b", 7}, false, SharedFromAbove{});
}

diopiError_t diopiConvexIouMmcv(Context ctx, Tensor ious, ConstTensor pointsets, ConstTensor polygons) {
    return measure_pairs(ctx, ious, {pointsets, "pointsets", 2 * kSetPoints}, {polygons, "polygons", 8}, false,
                         HullRatio{});
}

diopiError_t diopiPointsInPolygonsMmcv(Context ctx, Tensor output, ConstTensor points, ConstTensor polygons) {
    return measure_pairs(ctx, output, {points, "points", 2}, {polygons, "polygons", 8}, false, Holding{});
}

}  // namespace impl::portable
