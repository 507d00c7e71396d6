#include "math/math.h"
#include "reduce.h"
#include "reductions.h"

namespace diopi::kernels {
namespace {

// The first of equal elements wins; the first NaN wins over all.
template <class Values, class Flag>
struct PositionReduction {
    using C = ComputeType<ElementOf<Values>>;

    struct State {
        C value;
        int64_t position;
    };

    ReductionSpace<2> space;  // values, indices
    TensorView values;        // may be undefined
    TensorView indices;
    Values input;
    Flag largest;

    // True when `value` wins over a `best` that stands before it.
    DIOPI_HD bool wins(C value, C best) const {
        const bool better = largest ? value > best : value < best, improved = math::isnan(value) | better;
        return improved && !math::isnan(best);
    }

    DIOPI_HD State start() const { return {largest ? kWeakest<C, true> : kWeakest<C, false>, INT64_MAX}; }
    DIOPI_HD State join(const State& a, const State& b) const {
        return wins(b.value, a.value) || (!wins(a.value, b.value) && b.position < a.position) ? b : a;
    }
    DIOPI_HD State state(int64_t, const Part<1>& part, const Team& team) const {
        const Values base = input + part.base.at[0];
        State best{static_cast<C>(base[0]), 0};
        for_each_run(part.inner, base, team, [&](const Values& run, auto mine, auto stride, int64_t first) {
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

template <class T, class Flag>
struct ColumnPositionTask : ColumnBlocks<2> {
    PositionReduction<const T*, Flag> reduction;

    DIOPI_HD void operator()(int64_t block) const {
        visit(block, [&](int64_t first, auto width) {
            T best[kColumns];
            int64_t position[kColumns] = {};
            const int columns = width;
            const T* const base = reduction.input + space.outer.offsets(first).at[2];
            for (int c = 0; c < width; ++c) best[c] = base[c];
            each_row(base, [&](int64_t number, const T* row) {
                DIOPI_VECTOR_LOOP
                for (int c = 0; c < columns; ++c) {
                    const bool wins = reduction.wins(row[c], best[c]);
                    best[c] = wins ? row[c] : best[c];
                    position[c] = wins ? number : position[c];
                }
            });
            for (int c = 0; c < width; ++c) reduction.finish(first + c, {best[c], position[c]});
        });
    }
};

}  // namespace

void reduce_positions(Context ctx, const TensorView& values, const TensorView& indices, const TensorView& input,
                      DimSet dims, bool largest) {
    require(input.numel > 0 || indices.numel == 0, "the largest or smallest of no elements is not defined");
    require_storable(indices);
    const TensorView* const outputs[2] = {values.defined() ? &values : &indices, &indices};
    const ReductionSpace<2> space = reduction_space<2>(outputs, input, dims);
    dispatch_values<Any>(input, [&](auto elements) {
        with_flag(largest, [&](auto flag) {
            using T = ElementOf<decltype(elements)>;
            const PositionReduction<decltype(elements), decltype(flag)> reduction{space, values, indices, elements,
                                                                                  flag};
            if constexpr (Team::kAlone && std::is_floating_point_v<T>) {
                if (along_outputs(space.outer, space.inner, 16)) {
                    const ColumnPositionTask<T, decltype(flag)> task{{space}, reduction};
                    return for_each(ctx, task.blocks(), task);
                }
            }
            run_reduction(ctx, reduction);
        });
    });
}

}  // namespace diopi::kernels
