// The chamfer distance of two point clouds, each point from the nearest one of the other cloud, and its gradient.
#include <diopi/diopirt.h>

#include "clouds.h"
#include "core/view.h"
#include "math/math.h"
#include "space/bounds.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// For each point of `from` the nearest of `to`.
template <class T>
struct ChamferTask {
    TensorView distances, idx, from, to;

    DIOPI_HD void operator()(int64_t row) const {
        const int64_t b = row / from.sizes[1], i = row % from.sizes[1];
        auto least = squared_distance<T>(from, i, to, 0, b);
        int64_t nearest = 0;
        for (int64_t j = 1; j < to.sizes[1]; ++j) {
            const auto square = squared_distance<T>(from, i, to, j, b);
            if (square < least || (math::isnan(square) && !math::isnan(least))) {
                least = square;
                nearest = j;
            }
        }
        element<T>(distances, b, i) = cast<T>(least);
        element<int32_t>(idx, b, i) = static_cast<int32_t>(nearest);
    }
};

// The gradient of a point of `from`: by its own distance, and by those of the points that are nearest to it.
template <class T>
struct ChamferGradientTask {
    TensorView gradient, from, to;
    TensorView own_grad, own_idx, other_grad, other_idx;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const Position<3> at = position_in<3>(gradient.sizes, i);
        const int64_t b = at[0], n = at[1], d = at[2];
        const A x = cast<A>(element<T>(from, b, n, d));
        const auto slope = [&](const TensorView& grads, int64_t of, int64_t j) {
            return 2 * cast<A>(element<T>(grads, b, of)) * (x - cast<A>(element<T>(to, b, j, d)));
        };
        A sum = slope(own_grad, n, element<int32_t>(own_idx, b, n));
        for (int64_t j = 0; j < other_idx.sizes[1]; ++j) {
            if (element<int32_t>(other_idx, b, j) == n) sum += slope(other_grad, j, j);
        }
        element<T>(gradient, b, n, d) = cast<T>(sum);
    }
};

// One of the two clouds of a chamfer distance, with what belongs to each of its points.
struct Side {
    TensorView points, distances, idx;
};

Side side_of(ConstTensor xyz, ConstTensor distances, ConstTensor idx) {
    const TensorView points = required_view(xyz, "xyz");
    require(points.ndim == 3, "points have three dimensions, not %d", points.ndim);
    const Side side{points, sized_view(distances, "dist", {points.sizes[0], points.sizes[1]}),
                    sized_view(idx, "idx", {points.sizes[0], points.sizes[1]})};
    require_dtype(side.distances, points.dtype);
    require_dtype(side.idx, diopi_dtype_int32);
    return side;
}

void require_pair(const Side& a, const Side& b) {
    require_dtype(a.points, b.points.dtype);
    require(a.points.sizes[0] == b.points.sizes[0] && a.points.sizes[2] == b.points.sizes[2],
            "'xyz1' and 'xyz2' differ in batches or coordinates");
    require((a.points.sizes[1] == 0) == (b.points.sizes[1] == 0), "one of two clouds has no points to be near to");
}

template <class T>
void chamfer_gradient(Context ctx, const TensorView& gradient, const Side& own, const Side& other) {
    require_same_sizes(gradient, own.points, "grad_xyz", "xyz");
    require_dtype(gradient, own.points.dtype);
    require_in_bounds(ctx, own.idx, other.points.sizes[1], 1, Negative::refused);
    for_each(
        ctx, gradient.numel,
        ChamferGradientTask<T>{gradient, own.points, other.points, own.distances, own.idx, other.distances, other.idx});
}

}  // namespace

diopiError_t diopiChamferDistanceMmcv(Context ctx, Tensor dist1, Tensor dist2, Tensor idx1, Tensor idx2,
                                      ConstTensor xyz1, ConstTensor xyz2) {
    return guarded([&] {
        const Side first = side_of(xyz1, dist1, idx1), second = side_of(xyz2, dist2, idx2);
        require_pair(first, second);
        for_each_typed<Float, ChamferTask>(ctx, first.points.dtype, first.idx.numel, first.distances, first.idx,
                                           first.points, second.points);
        for_each_typed<Float, ChamferTask>(ctx, first.points.dtype, second.idx.numel, second.distances, second.idx,
                                           second.points, first.points);
    });
}

diopiError_t diopiChamferDistanceBackwardMmcv(Context ctx, Tensor grad_xyz1, Tensor grad_xyz2, ConstTensor xyz1,
                                              ConstTensor xyz2, ConstTensor idx1, ConstTensor idx2,
                                              ConstTensor grad_dist1, ConstTensor grad_dist2) {
    return guarded([&] {
        const Side first = side_of(xyz1, grad_dist1, idx1), second = side_of(xyz2, grad_dist2, idx2);
        require_pair(first, second);
        dispatch<Float>(first.points.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            chamfer_gradient<T>(ctx, required_view(grad_xyz1, "grad_xyz1"), first, second);
            chamfer_gradient<T>(ctx, required_view(grad_xyz2, "grad_xyz2"), second, first);
        });
    });
}

}  // namespace impl::portable
