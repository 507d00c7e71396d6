// Convex hulls of sets of points: their generalized overlaps, gradients included, and the smallest rectangles around
// them; and the corners of an intersection in order.
#include <diopi/diopirt.h>

#include "boxes.h"
#include "polygon.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Generalized intersection over union (Rezatofighi et al., algorithm 1).
DIOPI_HD inline Dual generalized_ratio(const Polygon<Dual>& points, const Polygon<Dual>& polygon) {
    const Polygon<Dual> own = hull(points);
    Polygon<Dual> all = points;
    for (int i = 0; i < polygon.count; ++i) all.add(polygon.at[i]);
    const Dual shared = shared_area(own, polygon);
    const Dual both = signed_area(own) + area(polygon) - shared;
    const Dual around = signed_area(hull(all));
    return shared / both - (around - both) / around;
}

// The derivative by one number of a set of points, or the measure itself after the last of them.
struct GeneralizedRatioTask {
    TensorView out;
    Boxes sets, polygons;

    DIOPI_HD void operator()(int64_t i) const {
        constexpr int64_t numbers = 2 * kSetPoints;
        const int64_t row = i / (numbers + 1), number = i % (numbers + 1);
        Polygon<Dual> points, polygon;
        for (int k = 0; k < kSetPoints; ++k) {
            const double* set = sets[row] + 2 * k;
            points.add({{set[0], number == 2 * k ? 1.0 : 0.0}, {set[1], number == 2 * k + 1 ? 1.0 : 0.0}});
        }
        for (int k = 0; k < 4; ++k) polygon.add({polygons[row][2 * k], polygons[row][2 * k + 1]});
        const Dual found = generalized_ratio(points, polygon);
        store_as(out, row * out.strides[0] + number * out.strides[1], number == numbers ? found.value : found.slope);
    }
};

// One side of the smallest rectangle around points lies along a side of their hull (Freeman and Shapira).
struct SmallestRectangleTask {
    TensorView out;
    Boxes sets;

    DIOPI_HD void operator()(int64_t row) const {
        const Polygon<double> corners = hull(polygon_of(sets[row], kSetPoints));
        Polygon<double> smallest;
        for (int i = 0; i < corners.count; ++i) {
            const Polygon<double> candidate = rectangle_along(corners.at[i], corners.after(i), corners);
            if (i == 0 || signed_area(candidate) < signed_area(smallest)) smallest = candidate;
        }
        for (int i = 0; i < 4; ++i) {
            store_as(out, row * out.strides[0] + 2 * i * out.strides[1], smallest.at[i].x);
            store_as(out, row * out.strides[0] + (2 * i + 1) * out.strides[1], smallest.at[i].y);
        }
    }

    DIOPI_HD static Polygon<double> rectangle_along(const Point<double>& a, const Point<double>& b,
                                                    const Polygon<double>& points) {
        const double angle = math::atan2(b.y - a.y, b.x - a.x);
        const double cos = math::cos(angle), sin = math::sin(angle);
        Polygon<double> turned;
        for (int i = 0; i < points.count; ++i) {
            const Point<double>& point = points.at[i];
            turned.add({point.x * cos + point.y * sin, point.y * cos - point.x * sin});
        }
        const Extent extent = extent_of(turned);
        Polygon<double> result;
        for (int i = 0; i < 4; ++i) {
            const double u = i == 1 || i == 2 ? extent.high[0] : extent.low[0],
                         v = i >= 2 ? extent.high[1] : extent.low[1];
            result.add({u * cos - v * sin, u * sin + v * cos});
        }
        return result;
    }
};

TensorView rows_output(Tensor out, const char* name, int64_t rows, int64_t columns) {
    const TensorView result = required_view(out, name);
    require_storable(result);
    require(result.ndim == 2 && result.sizes[0] == rows && result.sizes[1] == columns,
            "'%s' is not of the shape [%lld, %lld]", name, rows, columns);
    return result;
}

constexpr int kCandidates = 24;  // corners of the intersection of two rectangles
constexpr int kRing = 9;

struct SortVerticesTask {
    Elements<int32_t, 3> out;
    Elements<const float, 4> vertices;
    Elements<const bool, 3> mask;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t batch = i / out.sizes[1], row = i % out.sizes[1];
        int corners[kCandidates];
        double angles[kCandidates];
        int marked = 0, found = 0;
        for (int k = 0; k < kCandidates; ++k) {
            if (!mask(batch, row, k)) continue;
            ++marked;
            if (!seen(batch, row, k, corners, found)) insert(batch, row, k, corners, angles, found++);
        }
        int spare = kRing - 1;  // the first eight are corners of the rectangles themselves
        while (spare + 1 < kCandidates && mask(batch, row, spare)) ++spare;
        for (int n = 0; n < kRing; ++n) {
            const bool corner = marked >= 3 && n <= found;
            out(batch, row, n) = corner ? corners[n < found ? n : 0] : spare;
        }
    }

    DIOPI_HD bool seen(int64_t batch, int64_t row, int k, const int* corners, int found) const {
        for (int n = 0; n < found; ++n) {
            if (vertices(batch, row, corners[n], 0) == vertices(batch, row, k, 0) &&
                vertices(batch, row, corners[n], 1) == vertices(batch, row, k, 1))
                return true;
        }
        return false;
    }

    // Keeps the corners in the order of their angles from 0 to two pi.
    DIOPI_HD void insert(int64_t batch, int64_t row, int k, int* corners, double* angles, int found) const {
        double angle = math::atan2<double>(vertices(batch, row, k, 1), vertices(batch, row, k, 0));
        if (angle < 0) angle += 6.283185307179586;
        int n = found;
        for (; n > 0 && angles[n - 1] > angle; --n) {
            angles[n] = angles[n - 1];
            corners[n] = corners[n - 1];
        }
        angles[n] = angle;
        corners[n] = k;
    }
};

}  // namespace

diopiError_t diopiConvexGiouMmcv(Context ctx, Tensor output, ConstTensor pointsets, ConstTensor polygons) {
    return guarded([&] {
        const Boxes sets = boxes_of(ctx, pointsets, "pointsets", 2 * kSetPoints);
        const Boxes others = boxes_of(ctx, polygons, "polygons", 8);
        require(sets.count == others.count, "%lld sets of points and %lld polygons are no pairs", sets.count,
                others.count);
        const TensorView result = rows_output(output, "output", sets.count, 2 * kSetPoints + 1);
        for_each(ctx, result.numel, GeneralizedRatioTask{result, sets, others});
    });
}

diopiError_t diopiMinAreaPolygonsMmcv(Context ctx, Tensor polygons, ConstTensor pointsets) {
    return guarded([&] {
        const Boxes sets = boxes_of(ctx, pointsets, "pointsets", 2 * kSetPoints);
        for_each(ctx, sets.count, SmallestRectangleTask{rows_output(polygons, "polygons", sets.count, 8), sets});
    });
}

// The mask says which candidates are corners: their number is not needed.
diopiError_t diopiDiffIouRotatedSortVerticesMmcv(Context ctx, Tensor* out, ConstTensor vertices, ConstTensor mask,
                                                 ConstTensor) {
    return guarded([&] {
        const auto points = elements_of<const float, 4>(vertices, "vertices");
        const auto marks = elements_of<const bool, 3>(mask, "mask");
        require(points.sizes[2] == kCandidates && marks.sizes[2] == kCandidates, "expected %d candidates", kCandidates);
        const int64_t sizes[] = {points.sizes[0], points.sizes[1], kRing};
        const TensorView result = allocated(ctx, out, sizes, 3, diopi_dtype_int32);
        for_each(ctx, sizes[0] * sizes[1],
                 SortVerticesTask{elements_of<int32_t, 3>(result, "the ring"), points, marks});
    });
}

}  // namespace impl::portable
