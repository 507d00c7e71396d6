// Largest and smallest elements, with or without their positions. NaN wins, as in torch.
#include <diopi/diopirt.h>

#include "core/math.h"
#include "core/reduce.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The first of equal elements wins; the first NaN wins over all.
template <class T, bool largest>
struct PositionReduction {
    using C = ComputeType<T>;

    struct State {
        C value;
        int64_t position;
    };

    ReductionSpace<2> space;  // values, indices
    TensorView values;        // may be undefined
    TensorView indices;
    const T* input;

    // True when `value` wins over a `best` that stands before it.
    DIOPI_HD static bool wins(C value, C best) {
        return !math::isnan(best) && (math::isnan(value) || (largest ? value > best : value < best));
    }

    DIOPI_HD State start() const { return {kWeakest<C, largest>, INT64_MAX}; }
    DIOPI_HD State join(const State& a, const State& b) const {
        return wins(b.value, a.value) || (!wins(a.value, b.value) && b.position < a.position) ? b : a;
    }
    DIOPI_HD State state(int64_t, const Part<1>& part, const Team& team) const {
        const T* base = input + part.base.at[0];
        State best{static_cast<C>(base[0]), 0};
        for_each_run(part.inner, base, team, [&](const T* run, auto mine, auto stride, int64_t first) {
            const auto value = [&](int64_t k) { return static_cast<C>(run[k * stride]); };
            if constexpr (Team::kAlone) {
                for (int64_t k = 0; k < mine.end && !math::isnan(best.value); ++k)
                    if (wins(value(k), best.value)) best = {value(k), first + k};
            } else {
                best = fold_of_run(
                    mine, best,
                    [&](State found, int64_t k) {
                        return wins(value(k), found.value) ? State{value(k), first + k} : found;
                    },
                    [&](State a, State b) { return join(a, b); });
            }
        });
        best = team.reduce(best, [&](const State& a, const State& b) { return join(a, b); });
        return {best.value, part.position(best.position)};
    }
    DIOPI_HD void finish(int64_t i, const State& best) const {
        const Offsets<3> at = space.outer.offsets(i);
        if (values.defined()) store_as(values, at.at[0], best.value);
        store_as(indices, at.at[1], best.position);
    }
};

template <bool largest>
void extremum(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, DimSet dims) {
    require(input.numel > 0 || out.numel == 0, "the largest or smallest of no elements is not defined");
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        launch_fold<T>(ctx, out, input, dims, ExtremumFold<T, largest>{});
    });
}

template <bool largest>
void positions(diopiContextHandle_t ctx, const TensorView& values, const TensorView& indices, const TensorView& input,
               DimSet dims) {
    require(input.numel > 0 || indices.numel == 0, "the largest or smallest of no elements is not defined");
    require_storable(indices);
    const TensorView* const outputs[2] = {values.defined() ? &values : &indices, &indices};
    const ReductionSpace<2> space = reduction_space<2>(outputs, input, dims);
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        run_reduction(ctx, PositionReduction<T, largest>{space, values, indices, input.as<T>()});
    });
}

template <bool largest>
diopiError_t with_positions(diopiContextHandle_t ctx, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                            diopiConstTensorHandle_t input, int64_t dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        positions<largest>(ctx, required_view(values, "values"), required_view(indices, "indices"), x,
                           dim_set(&dim, x.ndim));
    });
}

template <bool largest>
diopiError_t of_all(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        extremum<largest>(ctx, required_view(out, "out"), x, all_dims(x.ndim));
    });
}

template <bool largest>
diopiError_t argument(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        positions<largest>(ctx, undefined_view(), required_view(out, "out"), x, dim_set(dim, x.ndim));
    });
}

}  // namespace

diopiError_t diopiMax(diopiContextHandle_t ctx, diopiTensorHandle_t max, diopiTensorHandle_t max_indices,
                      diopiConstTensorHandle_t input, int64_t dim) {
    return with_positions<true>(ctx, max, max_indices, input, dim);
}

diopiError_t diopiMin(diopiContextHandle_t ctx, diopiTensorHandle_t min, diopiTensorHandle_t min_indices,
                      diopiConstTensorHandle_t input, int64_t dim) {
    return with_positions<false>(ctx, min, min_indices, input, dim);
}

diopiError_t diopiMaxAll(diopiContextHandle_t ctx, diopiTensorHandle_t max, diopiConstTensorHandle_t input) {
    return of_all<true>(ctx, max, input);
}

diopiError_t diopiMinAll(diopiContextHandle_t ctx, diopiTensorHandle_t min, diopiConstTensorHandle_t input) {
    return of_all<false>(ctx, min, input);
}

diopiError_t diopiAmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t self,
                       diopiSize_t dim, bool) {
    return guarded([&] {
        const TensorView x = required_view(self, "self");
        extremum<true>(ctx, required_view(out, "out"), x, dim_set(dim, x.ndim));
    });
}

diopiError_t diopiArgmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool) {
    return argument<true>(ctx, out, input, dim);
}

diopiError_t diopiArgmin(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool) {
    return argument<false>(ctx, out, input, dim);
}

}  // namespace impl::portable
