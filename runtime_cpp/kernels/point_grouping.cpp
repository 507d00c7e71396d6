// Features of the points that neighbour searches name, and their gradients: each line of a gradient walks the names in
// order, so that sums do not depend on timing.
#include <diopi/diopirt.h>

#include "core/bounds.h"
#include "core/clouds.h"
#include "core/element.h"
#include "core/sums.h"
#include "core/view.h"

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

void require_dtype(const TensorView& tensor, diopiDtype_t dtype) {
    if (tensor.defined() && tensor.dtype != dtype) fail_dtype(tensor.dtype);
}

void group(diopiContextHandle_t ctx, Grouping g) {
    require_in_bounds(ctx, g.idx, g.points.sizes[2], 2, Negative::refused);
    require_dtype(g.points, g.grouped.dtype);
    require_dtype(g.weight, g.grouped.dtype);
    if (g.grouped.numel == 0) return;
    g.idx = converted(ctx, g.idx, diopi_dtype_int32);
    dispatch<Float>(g.grouped.dtype, [&](auto type) {
        for_each(ctx, g.grouped.numel, GroupTask<typename decltype(type)::type>{g});
    });
}

void group_backward(diopiContextHandle_t ctx, Grouping g) {
    require_in_bounds(ctx, g.idx, g.points.sizes[2], 2, Negative::refused);
    require_dtype(g.points, g.grouped.dtype);
    require_dtype(g.weight, g.grouped.dtype);
    if (g.points.numel == 0) return;
    g.idx = converted(ctx, g.idx, diopi_dtype_int32);
    summed_up(ctx, g.points, [&](const TensorView& sums) {
        g.points = sums;
        dispatch<Float>(g.grouped.dtype, [&](auto type) {
            for_each(ctx, sums.sizes[0] * sums.sizes[1], GroupGradientTask<typename decltype(type)::type>{g});
        });
    });
}

TensorView with_last(const TensorView& tensor) { return with_dim(tensor, tensor.ndim, 1, 0); }

Grouping gathering(diopiConstTensorHandle_t points, diopiConstTensorHandle_t grouped, diopiConstTensorHandle_t idx,
                   int64_t b, int64_t c, int64_t n, int64_t npoints) {
    return {sized_view(points, "points", {b, c, n}), with_last(sized_view(grouped, "out", {b, c, npoints})),
            with_last(with_last(sized_view(idx, "idx", {b, npoints}))), undefined_view()};
}

Grouping grouping(diopiConstTensorHandle_t points, diopiConstTensorHandle_t grouped, diopiConstTensorHandle_t idx,
                  int64_t b, int64_t c, int64_t n, int64_t npoints, int64_t nsample) {
    return {sized_view(points, "points", {b, c, n}), sized_view(grouped, "out", {b, c, npoints, nsample}),
            with_last(sized_view(idx, "idx", {b, npoints, nsample})), undefined_view()};
}

Grouping interpolation(diopiConstTensorHandle_t points, diopiConstTensorHandle_t grouped, diopiConstTensorHandle_t idx,
                       diopiConstTensorHandle_t weight, int64_t b, int64_t c, int64_t m, int64_t n) {
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
Grouping stacked(diopiContextHandle_t ctx, diopiConstTensorHandle_t features, diopiConstTensorHandle_t grouped,
                 diopiConstTensorHandle_t idx, diopiConstTensorHandle_t idx_counts,
                 diopiConstTensorHandle_t feature_counts, int64_t b, int64_t c, int64_t m, int64_t nsample) {
    const TensorView points = required_view(features, "features_tensor");
    require(points.ndim == 2 && points.sizes[1] == c, "'features_tensor' does not have %lld channels",
            static_cast<long long>(c));
    const TensorView out = sized_view(grouped, "out_tensor", {m, c, nsample});
    const TensorView index = sized_view(idx, "idx_tensor", {m, nsample});
    const TensorView places = temporary_like(ctx, index, diopi_dtype_int32);
    for_each(ctx, index.numel,
             StackedPlaceTask{places, index, sized_view(idx_counts, "idx_batch_cnt_tensor", {b}),
                              sized_view(feature_counts, "features_batch_cnt_tensor", {b})});
    return {with_dim(transposed(points, 0, 1), 0, 1, 0), with_dim(transposed(out, 0, 1), 0, 1, 0),
            with_last(with_dim(places, 0, 1, 0)), undefined_view()};
}

// Features [B, N, M, out_dim] scored by M matrices; the first neighbour is the centre.
struct Scoring {
    TensorView points, centers;
    TensorView scores;  // [B, npoint, K, M]
    TensorView places;  // [B, npoint, K]
    TensorView output;  // [B, out_dim, npoint, K]

    template <class T>
    DIOPI_HD AccumulateType<T> relative(int64_t b, int64_t p, int64_t k, int64_t m, int64_t o) const {
        using A = AccumulateType<T>;
        return cast<A>(element<T>(points, b, element<int64_t>(places, b, p, k), m, o)) -
               cast<A>(element<T>(centers, b, element<int64_t>(places, b, p, 0), m, o));
    }
};

template <class T>
struct ScoreTask {
    Scoring scoring;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const Scoring& s = scoring;
        const Position<4> at = position_in<4>(s.output.sizes, i);
        const int64_t b = at[0], o = at[1], p = at[2], k = at[3];
        A sum = 0;
        for (int64_t m = 0; m < s.scores.sizes[3]; ++m)
            sum += s.relative<T>(b, p, k, m, o) * cast<A>(element<T>(s.scores, b, p, k, m));
        element<T>(s.output, b, o, p, k) = cast<T>(sum);
    }
};

template <class T>
struct ScoreGradientTask {
    Scoring scoring;  // `output` is the gradient that came in
    TensorView grad_scores;

    DIOPI_HD void operator()(int64_t i) const {
        using A = AccumulateType<T>;
        const Scoring& s = scoring;
        const Position<4> at = position_in<4>(grad_scores.sizes, i);
        A sum = 0;
        for (int64_t o = 0; o < s.output.sizes[1]; ++o)
            sum += s.relative<T>(at[0], at[1], at[2], at[3], o) *
                   cast<A>(element<T>(s.output, at[0], o, at[1], at[2]));
        element<T>(grad_scores, at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

// The features of all points in one matrix and channel: as neighbours with the sign 1, as centres with -1.
template <class T>
struct ScoredFeatureGradientTask {
    Scoring scoring;
    TensorView sums;
    bool of_centers;

    DIOPI_HD void operator()(int64_t line) const {
        using A = AccumulateType<T>;
        const Scoring& s = scoring;
        const int64_t o = line % sums.sizes[3], m = line / sums.sizes[3] % sums.sizes[2];
        const int64_t b = line / sums.sizes[3] / sums.sizes[2];
        for (int64_t n = 0; n < sums.sizes[1]; ++n) element<A>(sums, b, n, m, o) = A(0);
        for (int64_t p = 0; p < s.places.sizes[1]; ++p) {
            for (int64_t k = 0; k < s.places.sizes[2]; ++k) {
                const A gradient =
                    cast<A>(element<T>(s.scores, b, p, k, m)) * cast<A>(element<T>(s.output, b, o, p, k));
                A& sum = element<A>(sums, b, element<int64_t>(s.places, b, p, of_centers ? 0 : k), m, o);
                sum += of_centers ? -gradient : gradient;
            }
        }
    }
};

Scoring scoring_of(diopiContextHandle_t ctx, diopiConstTensorHandle_t points, diopiConstTensorHandle_t centers,
                   diopiConstTensorHandle_t scores, diopiConstTensorHandle_t knn_idx, diopiConstTensorHandle_t output,
                   int64_t B, int64_t N, int64_t npoint, int64_t M, int64_t K, int64_t out_dim, int64_t aggregate) {
    require(aggregate == 0, "scores are added up: 'aggregate' must be 0, not %lld", static_cast<long long>(aggregate));
    const Scoring s{sized_view(points, "points", {B, N, M, out_dim}),
                    sized_view(centers, "centers", {B, N, M, out_dim}),
                    sized_view(scores, "scores", {B, npoint, K, M}),
                    converted(ctx, sized_view(knn_idx, "knn_idx", {B, npoint, K}), diopi_dtype_int64),
                    sized_view(output, "output", {B, out_dim, npoint, K})};
    require_in_bounds(ctx, s.places, N, 1, Negative::refused);
    for (const TensorView& operand : {s.points, s.centers, s.scores}) require_dtype(operand, s.output.dtype);
    return s;
}

}  // namespace

diopiError_t diopiGatherPointsMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t points,
                                   diopiConstTensorHandle_t idx, int64_t b, int64_t c, int64_t n, int64_t npoints) {
    return guarded([&] { group(ctx, gathering(points, out, idx, b, c, n, npoints)); });
}

diopiError_t diopiGatherPointsBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t grad_points,
                                           diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t idx, int64_t b,
                                           int64_t c, int64_t n, int64_t npoints) {
    return guarded([&] { group_backward(ctx, gathering(grad_points, grad_out, idx, b, c, n, npoints)); });
}

diopiError_t diopiGroupPointsMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t points,
                                  diopiConstTensorHandle_t idx, int64_t b, int64_t c, int64_t n, int64_t npoints,
                                  int64_t nsample) {
    return guarded([&] { group(ctx, grouping(points, out, idx, b, c, n, npoints, nsample)); });
}

diopiError_t diopiGroupPointsBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t grad_points,
                                          diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t idx, int64_t b,
                                          int64_t c, int64_t n, int64_t npoints, int64_t nsample) {
    return guarded([&] { group_backward(ctx, grouping(grad_points, grad_out, idx, b, c, n, npoints, nsample)); });
}

diopiError_t diopiStackGroupPointsMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t out_tensor,
                                       diopiConstTensorHandle_t features_tensor,
                                       diopiConstTensorHandle_t features_batch_cnt_tensor,
                                       diopiConstTensorHandle_t idx_tensor,
                                       diopiConstTensorHandle_t idx_batch_cnt_tensor, int64_t b, int64_t c, int64_t m,
                                       int64_t nsample) {
    return guarded([&] {
        group(ctx, stacked(ctx, features_tensor, out_tensor, idx_tensor, idx_batch_cnt_tensor,
                           features_batch_cnt_tensor, b, c, m, nsample));
    });
}

diopiError_t diopiStackGroupPointsBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t grad_features_tensor,
                                               diopiConstTensorHandle_t grad_out_tensor,
                                               diopiConstTensorHandle_t idx_tensor,
                                               diopiConstTensorHandle_t idx_batch_cnt_tensor,
                                               diopiConstTensorHandle_t features_batch_cnt_tensor, int64_t b,
                                               int64_t c, int64_t m, int64_t n, int64_t nsample) {
    return guarded([&] {
        const Grouping g = stacked(ctx, grad_features_tensor, grad_out_tensor, idx_tensor, idx_batch_cnt_tensor,
                                   features_batch_cnt_tensor, b, c, m, nsample);
        require(g.points.sizes[2] == n, "'grad_features_tensor' does not have %lld points", static_cast<long long>(n));
        group_backward(ctx, g);
    });
}

diopiError_t diopiThreeInterpolateMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t out,
                                       diopiConstTensorHandle_t points, diopiConstTensorHandle_t idx,
                                       diopiConstTensorHandle_t weight, int64_t b, int64_t c, int64_t m, int64_t n) {
    return guarded([&] { group(ctx, interpolation(points, out, idx, weight, b, c, m, n)); });
}

diopiError_t diopiThreeInterpolateBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t grad_points,
                                               diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t idx,
                                               diopiConstTensorHandle_t weight, int64_t b, int64_t c, int64_t n,
                                               int64_t m) {
    return guarded([&] { group_backward(ctx, interpolation(grad_points, grad_out, idx, weight, b, c, m, n)); });
}

diopiError_t diopiAssignScoreWithkMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t output,
                                       diopiConstTensorHandle_t points, diopiConstTensorHandle_t centers,
                                       diopiConstTensorHandle_t scores, diopiConstTensorHandle_t knn_idx, int64_t B,
                                       int64_t N, int64_t npoint, int64_t M, int64_t K, int64_t out_dim,
                                       int64_t aggregate) {
    return guarded([&] {
        const Scoring s =
            scoring_of(ctx, points, centers, scores, knn_idx, output, B, N, npoint, M, K, out_dim, aggregate);
        dispatch<Float>(s.output.dtype, [&](auto type) {
            for_each(ctx, s.output.numel, ScoreTask<typename decltype(type)::type>{s});
        });
    });
}

diopiError_t diopiAssignScoreWithkBackwardMmcv(diopiContextHandle_t ctx, diopiTensorHandle_t grad_points,
                                               diopiTensorHandle_t grad_centers, diopiTensorHandle_t grad_scores,
                                               diopiConstTensorHandle_t grad_out, diopiConstTensorHandle_t points,
                                               diopiConstTensorHandle_t centers, diopiConstTensorHandle_t scores,
                                               diopiConstTensorHandle_t knn_idx, int64_t B, int64_t N, int64_t npoint,
                                               int64_t M, int64_t K, int64_t out_dim, int64_t aggregate) {
    return guarded([&] {
        const Scoring s =
            scoring_of(ctx, points, centers, scores, knn_idx, grad_out, B, N, npoint, M, K, out_dim, aggregate);
        const TensorView score_gradient = sized_view(grad_scores, "grad_scores", {B, npoint, K, M});
        require_dtype(score_gradient, s.output.dtype);
        dispatch<Float>(s.output.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each(ctx, score_gradient.numel, ScoreGradientTask<T>{s, score_gradient});
            for (const bool of_centers : {false, true}) {
                const TensorView result = sized_view(of_centers ? grad_centers : grad_points, "a gradient of features",
                                                     {B, N, M, out_dim});
                require_dtype(result, s.output.dtype);
                summed_up(ctx, result, [&](const TensorView& sums) {
                    for_each(ctx, B * M * out_dim, ScoredFeatureGradientTask<T>{s, sums, of_centers});
                });
            }
        });
    });
}

}  // namespace impl::portable
