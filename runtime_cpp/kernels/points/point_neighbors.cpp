// Which points of a cloud to look at: those within a radius, the nearest, the furthest. Points are [batch, n, 3].
#include <diopi/diopirt.h>

#include "clouds.h"
#include "core/view.h"
#include "core/workspace.h"
#include "sorting/sorting.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The points that `idx` names for each centre are the first ones in a shell around it.
template <class T>
struct BallTask {
    TensorView idx, centers, points;
    TensorView center_counts, point_counts;  // of stacked clouds; undefined for a batch
    ComputeType<T> least, most;              // squares; a radius of zero names no point
    bool center_counts_itself;

    DIOPI_HD void operator()(int64_t row) const {
        const int64_t b = row / centers.sizes[1], i = row % centers.sizes[1];
        const bool stacked = center_counts.defined();
        const Cloud cloud = stacked ? cloud_of(center_counts, point_counts, i) : Cloud{0, points.sizes[1]};
        const int64_t wanted = idx.sizes[2];
        int64_t found = 0;
        for (int64_t n = 0; n < cloud.count && found < wanted; ++n) {
            const auto square = squared_distance<T>(centers, i, points, cloud.first + n, b);
            if ((center_counts_itself && square == 0) || (square >= least && square < most))
                element<int32_t>(idx, b, i, found++) = static_cast<int32_t>(n);
        }
        const int32_t rest = found > 0 ? element<int32_t>(idx, b, i, 0) : 0;
        if (found == 0 && stacked && wanted > 0) element<int32_t>(idx, b, i, found++) = -1;
        for (int64_t s = found; s < wanted; ++s) element<int32_t>(idx, b, i, s) = rest;
    }
};

template <class T>
struct NearestTask {
    TensorView distances, idx, centers, points;
    Entry<ComputeType<T>>* room;  // a line of results for each centre

    DIOPI_HD void operator()(int64_t row) const {
        const int64_t b = row / centers.sizes[1], i = row % centers.sizes[1];
        const int64_t wanted = idx.sizes[2];
        Entry<ComputeType<T>>* nearest = room + row * wanted;
        keep_first([&](int64_t n) { return squared_distance<T>(centers, i, points, n, b); }, points.sizes[1], nearest,
                   wanted, Order<ComputeType<T>>{false});
        for (int64_t s = 0; s < wanted; ++s) {
            element<T>(distances, b, i, s) = cast<T>(nearest[s].value);
            element<int32_t>(idx, b, i, s) = static_cast<int32_t>(nearest[s].place);
        }
    }
};

void find_nearest(Context ctx, const TensorView& distances, const TensorView& idx, const TensorView& centers,
                  const TensorView& points) {
    require(idx.sizes[2] <= points.sizes[1], "%lld points do not have %lld nearest ones", points.sizes[1],
            idx.sizes[2]);
    require_dtype(idx, diopi_dtype_int32);
    require_dtype(distances, points.dtype);
    require_dtype(centers, points.dtype);
    dispatch<Float>(points.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        auto* room = workspace_of<Entry<ComputeType<T>>>(ctx, idx.numel);
        for_each(ctx, idx.sizes[0] * idx.sizes[1], NearestTask<T>{distances, idx, centers, points, room});
    });
}

void query_ball(Context ctx, const TensorView& idx, const TensorView& centers, const TensorView& points,
                const TensorView& center_counts, const TensorView& point_counts, float min_radius, float max_radius) {
    require_dtype(idx, diopi_dtype_int32);
    require_dtype(centers, points.dtype);
    dispatch<Float>(points.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const auto least = static_cast<ComputeType<T>>(min_radius), most = static_cast<ComputeType<T>>(max_radius);
        for_each(ctx, idx.sizes[0] * idx.sizes[1],
                 BallTask<T>{idx, centers, points, center_counts, point_counts, least * least, most * most,
                             !center_counts.defined()});
    });
}

// Distances of the points of a cloud from one of them: of their coordinates, or listed.
struct CoordinateDistance {
    TensorView points;
    DIOPI_HD float operator()(int64_t b, int64_t from, int64_t to) const {
        return squared_distance<float>(points, from, points, to, b);
    }
};

struct ListedDistance {
    TensorView distances;
    DIOPI_HD float operator()(int64_t b, int64_t from, int64_t to) const {
        return element<float>(distances, b, from, to);
    }
};

template <class Distance>
struct FurthestTask {
    TensorView nearest;  // the distance of each point from those picked
    TensorView idx;
    Distance distance;

    DIOPI_HD void operator()(int64_t b) const {
        int64_t picked = 0;
        for (int64_t s = 0; s < idx.sizes[1]; ++s) {
            element<int32_t>(idx, b, s) = static_cast<int32_t>(picked);
            if (s + 1 < idx.sizes[1]) picked = furthest(b, picked);
        }
    }

    // Takes `picked` into account, then gives the first of the points that are furthest.
    DIOPI_HD int64_t furthest(int64_t b, int64_t picked) const {
        int64_t best = 0;
        float most = -1;
        for (int64_t n = 0; n < nearest.sizes[1]; ++n) {
            float& own = element<float>(nearest, b, n);
            const float square = distance(b, picked, n);
            if (square < own) own = square;
            if (own > most) {
                most = own;
                best = n;
            }
        }
        return best;
    }
};

template <class Distance>
void pick_furthest(Context ctx, Tensor temp, Tensor idx, const Distance& distance, int64_t B, int64_t N,
                   int64_t num_points) {
    const TensorView nearest = sized_view(temp, "temp_tensor", {B, N});
    const TensorView picks = sized_view(idx, "idx_tensor", {B, num_points});
    require(N > 0 || num_points == 0, "no point can be picked from an empty cloud");
    require_dtype(nearest, diopi_dtype_float32);
    require_dtype(picks, diopi_dtype_int32);
    for_each(ctx, B, FurthestTask<Distance>{nearest, picks, distance});
}

TensorView float_view(ConstTensor handle, const char* name, std::initializer_list<int64_t> sizes) {
    const TensorView tensor = sized_view(handle, name, sizes);
    require_dtype(tensor, diopi_dtype_float32);
    return tensor;
}

}  // namespace

diopiError_t diopiBallQueryMmcv(Context ctx, Tensor idx, ConstTensor center_xyz, ConstTensor xyz, int64_t B, int64_t N,
                                int64_t npoint, int64_t sample_num, float min_radius, float max_radius) {
    return guarded([&] {
        query_ball(ctx, sized_view(idx, "idx", {B, npoint, sample_num}),
                   sized_view(center_xyz, "center_xyz", {B, npoint, 3}), sized_view(xyz, "xyz", {B, N, 3}),
                   undefined_view(), undefined_view(), min_radius, max_radius);
    });
}

diopiError_t diopiStackBallQueryMmcv(Context ctx, Tensor idx, ConstTensor center_xyz, ConstTensor center_xyz_batch_cnt,
                                     ConstTensor xyz, ConstTensor xyz_batch_cnt, float max_radius, int64_t sample_num) {
    return guarded([&] {
        const TensorView centers = required_view(center_xyz, "center_xyz"), points = required_view(xyz, "xyz");
        require(centers.ndim == 2 && points.ndim == 2, "stacked clouds have two dimensions");
        require_sizes(centers, "center_xyz", {centers.sizes[0], 3});
        require_sizes(points, "xyz", {points.sizes[0], 3});
        const TensorView point_counts = required_view(xyz_batch_cnt, "xyz_batch_cnt");
        require(point_counts.ndim == 1, "'xyz_batch_cnt' is a list");
        query_ball(ctx, with_dim(sized_view(idx, "idx", {centers.sizes[0], sample_num}), 0, 1, 0),
                   with_dim(centers, 0, 1, 0), with_dim(points, 0, 1, 0),
                   sized_view(center_xyz_batch_cnt, "center_xyz_batch_cnt", {point_counts.numel}), point_counts, 0,
                   max_radius);
    });
}

diopiError_t diopiKnnMmcv(Context ctx, Tensor idx_tensor, Tensor dist2_tensor, ConstTensor xyz_tensor,
                          ConstTensor new_xyz_tensor, int64_t b, int64_t n, int64_t m, int64_t nsample) {
    return guarded([&] {
        find_nearest(ctx, sized_view(dist2_tensor, "dist2_tensor", {b, m, nsample}),
                     sized_view(idx_tensor, "idx_tensor", {b, m, nsample}),
                     sized_view(new_xyz_tensor, "new_xyz_tensor", {b, m, 3}),
                     sized_view(xyz_tensor, "xyz_tensor", {b, n, 3}));
    });
}

diopiError_t diopiThreeNnMmcv(Context ctx, Tensor dist2, Tensor idx, ConstTensor unknown, ConstTensor known, int64_t b,
                              int64_t n, int64_t m) {
    return guarded([&] {
        find_nearest(ctx, sized_view(dist2, "dist2", {b, n, 3}), sized_view(idx, "idx", {b, n, 3}),
                     sized_view(unknown, "unknown", {b, n, 3}), sized_view(known, "known", {b, m, 3}));
    });
}

diopiError_t diopiFurthestPointSamplingMmcv(Context ctx, Tensor temp_tensor, Tensor idx_tensor, ConstTensor points_xyz,
                                            int64_t B, int64_t N, int64_t num_points) {
    return guarded([&] {
        pick_furthest(ctx, temp_tensor, idx_tensor, CoordinateDistance{float_view(points_xyz, "points_xyz", {B, N, 3})},
                      B, N, num_points);
    });
}

diopiError_t diopiFurthestPointSamplingWithDistMmcv(Context ctx, Tensor temp_tensor, Tensor idx_tensor,
                                                    ConstTensor points_dist, int64_t B, int64_t N, int64_t num_points) {
    return guarded([&] {
        pick_furthest(ctx, temp_tensor, idx_tensor, ListedDistance{float_view(points_dist, "points_dist", {B, N, N})},
                      B, N, num_points);
    });
}

}  // namespace impl::portable
