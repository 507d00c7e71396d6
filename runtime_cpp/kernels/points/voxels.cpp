// Point clouds as voxels: the voxel of each point, the points of each voxel, and what these points are reduced to. One
// task numbers the voxels in the order of their first points, so that results do not depend on timing.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/host_list.h"
#include "math/math.h"
#include "space/element.h"
#include "voxel_members.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

enum Reduction : int64_t { kSum, kMean, kMaximum };

// The voxel of each point, last coordinate first; -1 for points outside.
template <class T>
struct PlaceTask {
    TensorView coors, points, voxel_size, range;

    DIOPI_HD void operator()(int64_t i) const {
        using C = ComputeType<T>;
        const int64_t dims = coors.sizes[1];
        bool inside = true;
        for (int64_t d = 0; d < dims; ++d) {
            const C low = number_at<C>(range, d), high = number_at<C>(range, dims + d);
            const C size = number_at<C>(voxel_size, d);
            const C place = math::floor((cast<C>(element<T>(points, i, d)) - low) / size);
            inside = inside && place >= 0 && place < math::round((high - low) / size);
            if (inside) element<int32_t>(coors, i, dims - 1 - d) = static_cast<int32_t>(place);
        }
        for (int64_t d = 0; d < dims && !inside; ++d) element<int32_t>(coors, i, d) = -1;
    }
};

void place_points(Context ctx, const TensorView& coors, ConstTensor points, ConstTensor voxel_size, ConstTensor range) {
    const TensorView cloud = required_view(points, "points");
    const int64_t dims = coors.sizes[1];
    require(cloud.ndim == 2 && cloud.sizes[0] == coors.sizes[0] && cloud.sizes[1] >= dims,
            "'points' does not have %lld coordinates", dims);
    require_dtype(coors, diopi_dtype_int32);
    const TensorView size = sized_view(voxel_size, "voxel_size", {dims});
    const TensorView limits = sized_view(range, "coors_range", {2 * dims});
    for_each_typed<Float, PlaceTask>(ctx, cloud.dtype, cloud.sizes[0], coors, cloud, size, limits);
}

// The coordinates and the number of points, at most `most`, of each voxel; zero where there is no voxel.
struct DescribeTask {
    TensorView coors, counts;
    TensorView point_coors;
    VoxelMembers members;
    int64_t most;

    DIOPI_HD void operator()(int64_t v) const {
        const int64_t first = members.first[v], count = members.counts[v];
        element<int32_t>(counts, v) = static_cast<int32_t>(count < most ? count : most);
        for (int64_t d = 0; d < coors.sizes[1]; ++d)
            element<int32_t>(coors, v, d) = first < 0 ? 0 : element<int32_t>(point_coors, first, d);
    }
};

// One column of the points of a voxel; zeros behind the last.
template <class T>
struct ListPointsTask {
    TensorView voxels, points;
    VoxelMembers members;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t v = i / points.sizes[1], column = i % points.sizes[1];
        int64_t point = members.first[v];
        for (int64_t p = 0; p < voxels.sizes[1]; ++p) {
            element<T>(voxels, v, p, column) = point < 0 ? cast<T>(0) : element<T>(points, point, column);
            if (point >= 0) point = members.next[point];
        }
    }
};

template <class T>
struct ReduceTask {
    TensorView reduced, feats;
    VoxelMembers members;
    int64_t reduction;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const int64_t v = i / feats.sizes[1], column = i % feats.sizes[1];
        A result = cast<A>(element<T>(feats, members.first[v], column));
        for (int64_t p = members.next[members.first[v]]; p >= 0; p = members.next[p]) {
            const A value = cast<A>(element<T>(feats, p, column));
            result = reduction == kMaximum ? math::max(result, value) : result + value;
        }
        if (reduction == kMean) result /= static_cast<A>(members.counts[v]);
        element<T>(reduced, v, column) = cast<T>(result);
    }
};

// One column of the gradients of a voxel's points; those of a maximum are zero before.
template <class T>
struct HandBackTask {
    TensorView grad_feats, grad_reduced, feats, reduced, counts;
    VoxelMembers members;
    int64_t reduction;

    DIOPI_HD void operator()(int64_t i) const {
        using C = ComputeType<T>;
        const int64_t v = i / feats.sizes[1], column = i % feats.sizes[1];
        C gradient = cast<C>(element<T>(grad_reduced, v, column));
        if (reduction == kMean) gradient /= number_at<C>(counts, v);
        for (int64_t p = members.first[v]; p >= 0; p = members.next[p]) {
            if (reduction == kMaximum &&
                cast<C>(element<T>(feats, p, column)) != cast<C>(element<T>(reduced, v, column)))
                continue;
            element<T>(grad_feats, p, column) = cast<T>(gradient);
            if (reduction == kMaximum) return;
        }
    }
};

void require_reduction(int64_t type) {
    require(type >= kSum && type <= kMaximum, "there is no reduction of type %lld", type);
}

}  // namespace

diopiError_t diopiDynamicVoxelizeMmcv(Context ctx, Tensor coors, ConstTensor points, ConstTensor voxel_size,
                                      ConstTensor coors_range, const int64_t NDim) {
    return guarded([&] {
        const int64_t count = required_view(points, "points").sizes[0];
        place_points(ctx, sized_view(coors, "coors", {count, NDim}), points, voxel_size, coors_range);
    });
}

// The order of the points is kept always, which is right for every value of `deterministic`.
diopiError_t diopiHardVoxelizeMmcv(Context ctx, Tensor voxels, Tensor coors, Tensor num_points_per_voxel,
                                   Tensor voxel_num, ConstTensor points, ConstTensor voxel_size,
                                   ConstTensor coors_range, const int64_t max_points, const int64_t max_voxels,
                                   const int64_t NDim, const bool) {
    return guarded([&] {
        const TensorView cloud = required_view(points, "points");
        const int64_t sizes[] = {cloud.sizes[0], NDim};
        const TensorView places = temporary(ctx, sizes, 2, diopi_dtype_int32);
        place_points(ctx, places, points, voxel_size, coors_range);
        const TensorView held = sized_view(voxels, "voxels", {max_voxels, max_points, cloud.sizes[1]});
        const TensorView corners = sized_view(coors, "coors", {max_voxels, NDim});
        const TensorView counts = sized_view(num_points_per_voxel, "num_points_per_voxel", {max_voxels});
        for (const TensorView& result : {corners, counts}) require_dtype(result, diopi_dtype_int32);
        require_dtype(held, cloud.dtype);
        const NumberTask numbered = number_voxels(ctx, places, temporary(ctx, sizes, 1, diopi_dtype_int32), max_voxels);
        for_each(ctx, max_voxels, DescribeTask{corners, counts, places, numbered.members, max_points});
        for_each_typed<Float, ListPointsTask>(ctx, cloud.dtype, max_voxels * cloud.sizes[1], held, cloud,
                                              numbered.members);
        copy_elements(ctx, required_view(voxel_num, "voxel_num"), numbered.count);
    });
}

diopiError_t diopiDynamicPointToVoxelMmcv(Context ctx, Tensor* outlist, ConstTensor feats, ConstTensor coors,
                                          int64_t reduce_type) {
    return guarded([&] {
        require_reduction(reduce_type);
        const TensorView values = required_view(feats, "feats");
        const TensorView places = converted(ctx, required_view(coors, "coors"), diopi_dtype_int32);
        require(values.ndim == 2 && places.ndim == 2 && values.sizes[0] == places.sizes[0],
                "'feats' and 'coors' have a row for each point");
        const int64_t points = places.sizes[0];
        const TensorView numbers = allocated(ctx, outlist + 2, &points, 1, diopi_dtype_int32);
        const NumberTask numbered = number_voxels(ctx, places, numbers, points);
        const int64_t count = read_back(ctx, numbered.count)[0];
        const int64_t sizes[] = {count, values.sizes[1]}, corner_sizes[] = {count, places.sizes[1]};
        const TensorView reduced = allocated(ctx, outlist, sizes, 2, values.dtype);
        const TensorView corners = allocated(ctx, outlist + 1, corner_sizes, 2, diopi_dtype_int32);
        const TensorView counts = allocated(ctx, outlist + 3, &count, 1, diopi_dtype_int32);
        for_each(ctx, count, DescribeTask{corners, counts, places, numbered.members, points});
        for_each_typed<Float, ReduceTask>(ctx, values.dtype, reduced.numel, reduced, values, numbered.members,
                                          reduce_type);
    });
}

diopiError_t diopiDynamicPointToVoxelBackwardMmcv(Context ctx, Tensor grad_feats, ConstTensor grad_reduced_feats,
                                                  ConstTensor feats, ConstTensor reduced_feats, ConstTensor coors_idx,
                                                  ConstTensor reduce_count, int64_t reduce_type) {
    return guarded([&] {
        require_reduction(reduce_type);
        const TensorView values = required_view(feats, "feats");
        const TensorView grads = required_view(grad_reduced_feats, "grad_reduced_feats");
        require(values.ndim == 2 && grads.ndim == 2 && values.sizes[1] == grads.sizes[1],
                "'feats' and 'grad_reduced_feats' have the same columns");
        const int64_t points = values.sizes[0], voxels = grads.sizes[0];
        const TensorView result = sized_view(grad_feats, "grad_feats", {points, values.sizes[1]});
        const TensorView reduced = sized_view(reduced_feats, "reduced_feats", {voxels, values.sizes[1]});
        for (const TensorView& other : {grads, reduced, result}) require_dtype(other, values.dtype);
        const VoxelMembers members = voxel_members(ctx, voxels, points);
        for_each(ctx, 1, CollectTask{sized_view(coors_idx, "coors_idx", {points}), members});
        fill_zero(ctx, result);
        const TensorView counts = sized_view(reduce_count, "reduce_count", {voxels});
        for_each_typed<Float, HandBackTask>(ctx, values.dtype, grads.numel, result, grads, values, reduced, counts,
                                            members, reduce_type);
    });
}

}  // namespace impl::portable
