// Features of the points that neighbour searches name, and their gradients: each line of a gradient walks the names in
// order, so that sums do not depend on timing.
#include <diopi/diopirt.h>

#include "clouds.h"
#include "copy/sums.h"
#include "core/view.h"
#include "space/bounds.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// grouped[b, c, i, s] = sum over k of weight[b, i, s, k] points[b, c, idx[b, i, s, k]], or the gradient of that.
struct Grouping {
    TensorView points;   // [batches, channels, points]
    TensorView grouped;  // [batches, channels, groups, samples]
    TensorView idx;      // int32, [batches, groups, samples, terms]
    TensorView weight;   // as idx; undefined where each counts once

    template <class A, class T>
    DIOPI_HD A weight_at(const Position<4>& at, int64_t term) const {
        return weight.defined() ? cast<A>(element<T>(weight, at[0], at[2], at[3], term)) : A(1);
    }
    DIOPI_HD int64_t place(const Position<4>& at, int64_t term) const {
        return element<int32_t>(idx, at[0], at[2], at[3], term);
    }
};

template <class T>
struct GroupTask {
    Grouping grouping;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const Grouping& g = grouping;
        const Position<4> at = position_in<4>(g.grouped.sizes, i);
        A sum = 0;
        for (int64_t k = 0; k < g.idx.sizes[3]; ++k)
            sum += g.weight_at<A, T>(at, k) * cast<A>(element<T>(g.points, at[0], at[1], g.place(at, k)));
        element<T>(g.grouped, at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

template <class T>
struct GroupGradientTask {
    Grouping grouping;  // `points` is a sum of AccumulateType<T>

    DIOPI_HD void operator()(int64_t line) const {
        using A = AccumulateType<T>;
        const Grouping& g = grouping;
        const int64_t groups = g.grouped.sizes[2] * g.grouped.sizes[3];
        const int64_t b = line / g.points.sizes[1], c = line % g.points.sizes[1];
        for (int64_t n = 0; n < g.points.sizes[2]; ++n) element<A>(g.points, b, c, n) = A(0);
        for (int64_t i = 0; i < groups; ++i) {
            const Position<4> at = position_in<4>(g.grouped.sizes, line * groups + i);
            const A gradient = cast<A>(element<T>(g.grouped, b, c, at[2], at[3]));
            for (int64_t k = 0; k < g.idx.sizes[3]; ++k)
                element<A>(g.points, b, c, g.place(at, k)) += g.weight_at<A, T>(at, k) * gradient;
        }
    }
};

Grouping checked(Context ctx, Grouping g) {
    require_in_bounds(ctx, g.idx, g.points.sizes[2], 2, Negative::refused);
    require_dtype(g.points, g.grouped.dtype);
    require_dtype(g.weight, g.grouped.dtype);
    g.idx = converted(ctx, g.idx, diopi_dtype_int32);
    return g;
}

void group(Context ctx, const Grouping& unchecked) {
    const Grouping g = checked(ctx, unchecked);
    if (g.grouped.numel == 0) return;
    for_each_typed<Float, GroupTask>(ctx, g.grouped.dtype, g.grouped.numel, g);
}

void group_backward(Context ctx, const Grouping& unchecked) {
    Grouping g = checked(ctx, unchecked);
    if (g.points.numel == 0) return;
    summed_up(ctx, g.points, [&](const TensorView& sums) {
        g.points = sums;
        for_each_typed<Float, GroupGradientTask>(ctx, g.grouped.dtype, sums.sizes[0] * sums.sizes[1], g);
    });
}

TensorView with_last(const TensorView& tensor) { return with_dim(tensor, tensor.ndim, 1, 0); }

Grouping gathering(ConstTensor points, ConstTensor grouped, ConstTensor idx, int64_t b, int64_t c, int64_t n,
                   int64_t npoints) {
    return {sized_view(points, "points", {b, c, n}), with_last(sized_view(grouped, "out", {b, c, npoints})),
            with_last(with_last(sized_view(idx, "idx", {b, npoints}))), undefined_view()};
}

Grouping grouping(ConstTensor points, ConstTensor grouped, ConstTensor idx, int64_t b, int64_t c, int64_t n,
                  int64_t npoints, int64_t nsample) {
    return {sized_view(points, "points", {b, c, n}), sized_view(grouped, "out", {b, c, npoints, nsample}),
            with_last(sized_view(idx, "idx", {b, npoints, nsample})), undefined_view()};
}

Grouping interpolation(ConstTensor points, ConstTensor grouped, ConstTensor idx, ConstTensor weight, int64_t b,
                       int64_t c, int64_t m, int64_t n) {
    return {sized_view(points, "points", {b, c, m}), with_last(sized_view(grouped, "out", {b, c, n})),
            with_dim(sized_view(idx, "idx", {b, n, 3}), 2, 1, 0),
            with_dim(sized_view(weight, "weight", {b, n, 3}), 2, 1, 0)};
}

// Positions counted from the first point of all clouds.
struct StackedPlaceTask {
    TensorView places, idx, groups, points;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t m = i / idx.sizes[1], s = i % idx.sizes[1];
        const Cloud cloud = cloud_of(groups, points, m);
        element<int32_t>(places, m, s) = static_cast<int32_t>(cloud.first + number_at<int64_t>(idx, m, s));
    }
};

// One batch: points [n, c] and groups [m, c, nsample] are seen with their channels in front.
Grouping stacked(Context ctx, ConstTensor features, ConstTensor grouped, ConstTensor idx, ConstTensor idx_counts,
                 ConstTensor feature_counts, int64_t b, int64_t c, int64_t m, int64_t nsample) {
    const TensorView points = required_view(features, "features_tensor");
    require(points.ndim == 2 && points.sizes[1] == c, "'features_tensor' does not have %lld channels", c);
    const TensorView out = sized_view(grouped, "out_tensor", {m, c, nsample});
    const TensorView index = sized_view(idx, "idx_tensor", {m, nsample});
    const TensorView places = temporary_like(ctx, index, diopi_dtype_int32);
    for_each(ctx, index.numel,
             StackedPlaceTask{places, index, sized_view(idx_counts, "idx_batch_cnt_tensor", {b}),
                              sized_view(feature_counts, "features_batch_cnt_tensor", {b})});
    return {with_dim(transposed(points, 0, 1), 0, 1, 0), with_dim(transposed(out, 0, 1), 0, 1, 0),
            with_last(with_dim(places, 0, 1, 0)), undefined_view()};
}

}  // namespace

diopiError_t diopiGatherPointsMmcv(Context ctx, Tensor out, ConstTensor points, ConstTensor idx, int64_t b, int64_t c,
                                   int64_t n, int64_t npoints) {
    return guarded([&] { group(ctx, gathering(points, out, idx, b, c, n, npoints)); });
}

diopiError_t diopiGatherPointsBackwardMmcv(Context ctx, Tensor grad_points, ConstTensor grad_out, ConstTensor idx,
                                           int64_t b, int64_t c, int64_t n, int64_t npoints) {
    return guarded([&] { group_backward(ctx, gathering(grad_points, grad_out, idx, b, c, n, npoints)); });
}

diopiError_t diopiGroupPointsMmcv(Context ctx, Tensor out, ConstTensor points, ConstTensor idx, int64_t b, int64_t c,
                                  int64_t n, int64_t npoints, int64_t nsample) {
    return guarded([&] { group(ctx, grouping(points, out, idx, b, c, n, npoints, nsample)); });
}

diopiError_t diopiGroupPointsBackwardMmcv(Context ctx, Tensor grad_points, ConstTensor grad_out, ConstTensor idx,
                                          int64_t b, int64_t c, int64_t n, int64_t npoints, int64_t nsample) {
    return guarded([&] { group_backward(ctx, grouping(grad_points, grad_out, idx, b, c, n, npoints, nsample)); });
}

diopiError_t diopiStackGroupPointsMmcv(Context ctx, Tensor out_tensor, ConstTensor features_tensor,
                                       ConstTensor features_batch_cnt_tensor, ConstTensor idx_tensor,
                                       ConstTensor idx_batch_cnt_tensor, int64_t b, int64_t c, int64_t m,
                                       int64_t nsample) {
    return guarded([&] {
        group(ctx, stacked(ctx, features_tensor, out_tensor, idx_tensor, idx_batch_cnt_tensor,
                           features_batch_cnt_tensor, b, c, m, nsample));
    });
}

diopiError_t diopiStackGroupPointsBackwardMmcv(Context ctx, Tensor grad_features_tensor, ConstTensor grad_out_tensor,
                                               ConstTensor idx_tensor, ConstTensor idx_batch_cnt_tensor,
                                               ConstTensor features_batch_cnt_tensor, int64_t b, int64_t c, int64_t m,
                                               int64_t n, int64_t nsample) {
    return guarded([&] {
        const Grouping g = stacked(ctx, grad_features_tensor, grad_out_tensor, idx_tensor, idx_batch_cnt_tensor,
                                   features_batch_cnt_tensor, b, c, m, nsample);
        require(g.points.sizes[2] == n, "'grad_features_tensor' does not have %lld points", n);
        group_backward(ctx, g);
    });
}

diopiError_t diopiThreeInterpolateMmcv(Context ctx, Tensor out, ConstTensor points, ConstTensor idx, ConstTensor weight,
                                       int64_t b, int64_t c, int64_t m, int64_t n) {
    return guarded([&] { group(ctx, interpolation(points, out, idx, weight, b, c, m, n)); });
}

diopiError_t diopiThreeInterpolateBackwardMmcv(Context ctx, Tensor grad_points, ConstTensor grad_out, ConstTensor idx,
                                               ConstTensor weight, int64_t b, int64_t c, int64_t n, int64_t m) {
    return guarded([&] { group_backward(ctx, interpolation(grad_points, grad_out, idx, weight, b, c, m, n)); });
}

}  // namespace impl::portable
