// Features of neighbours relative to their centres, weighted by scores (PAConv), and the gradients: each line of one
// walks the neighbours in order, so that sums do not depend on timing.
#include <diopi/diopirt.h>

#include "copy/sums.h"
#include "space/bounds.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

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
            sum += s.relative<T>(at[0], at[1], at[2], at[3], o) * cast<A>(element<T>(s.output, at[0], o, at[1], at[2]));
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

Scoring scoring_of(Context ctx, ConstTensor points, ConstTensor centers, ConstTensor scores, ConstTensor knn_idx,
                   ConstTensor output, int64_t B, int64_t N, int64_t npoint, int64_t M, int64_t K, int64_t out_dim,
                   int64_t aggregate) {
    require(aggregate == 0, "scores are added up: 'aggregate' must be 0, not %lld", aggregate);
    const Scoring s{sized_view(points, "points", {B, N, M, out_dim}),
                    sized_view(centers, "centers", {B, N, M, out_dim}), sized_view(scores, "scores", {B, npoint, K, M}),
                    converted(ctx, sized_view(knn_idx, "knn_idx", {B, npoint, K}), diopi_dtype_int64),
                    sized_view(output, "output", {B, out_dim, npoint, K})};
    require_in_bounds(ctx, s.places, N, 1, Negative::refused);
    for (const TensorView& operand : {s.points, s.centers, s.scores}) require_dtype(operand, s.output.dtype);
    return s;
}

}  // namespace

diopiError_t diopiAssignScoreWithkMmcv(Context ctx, Tensor output, ConstTensor points, ConstTensor centers,
                                       ConstTensor scores, ConstTensor knn_idx, int64_t B, int64_t N, int64_t npoint,
                                       int64_t M, int64_t K, int64_t out_dim, int64_t aggregate) {
    return guarded([&] {
        const Scoring s =
            scoring_of(ctx, points, centers, scores, knn_idx, output, B, N, npoint, M, K, out_dim, aggregate);
        for_each_typed<Float, ScoreTask>(ctx, s.output.dtype, s.output.numel, s);
    });
}

diopiError_t diopiAssignScoreWithkBackwardMmcv(Context ctx, Tensor grad_points, Tensor grad_centers, Tensor grad_scores,
                                               ConstTensor grad_out, ConstTensor points, ConstTensor centers,
                                               ConstTensor scores, ConstTensor knn_idx, int64_t B, int64_t N,
                                               int64_t npoint, int64_t M, int64_t K, int64_t out_dim,
                                               int64_t aggregate) {
    return guarded([&] {
        const Scoring s =
            scoring_of(ctx, points, centers, scores, knn_idx, grad_out, B, N, npoint, M, K, out_dim, aggregate);
        const TensorView score_gradient = sized_view(grad_scores, "grad_scores", {B, npoint, K, M});
        require_dtype(score_gradient, s.output.dtype);
        dispatch<Float>(s.output.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each(ctx, score_gradient.numel, ScoreGradientTask<T>{s, score_gradient});
            for (const bool of_centers : {false, true}) {
                const TensorView result =
                    sized_view(of_centers ? grad_centers : grad_points, "a gradient of features", {B, N, M, out_dim});
                require_dtype(result, s.output.dtype);
                summed_up(ctx, result, [&](const TensorView& sums) {
                    for_each(ctx, B * M * out_dim, ScoredFeatureGradientTask<T>{s, sums, of_centers});
                });
            }
        });
    });
}

}  // namespace impl::portable
