// Reductions: the loop that folds the elements of each output, and how the outputs and their elements are shared out.
#ifndef DIOPI_KERNELS_CORE_REDUCE_H_
#define DIOPI_KERNELS_CORE_REDUCE_H_

#include <diopi/diopirt.h>

#include "reduction_space.h"
#include "strides.h"
#include "team.h"
#include "tensor.h"
#include "workspace.h"

namespace diopi::kernels {

// Calls run(pointer, elements, stride) with a stride as of with_stride() for each row of `inner` below `base` in which
// this thread of a team has elements.
template <class T, class TeamOrAlone, class Run>
DIOPI_HD inline void for_each_run(const Space<1>& inner, const T* base, const TeamOrAlone& team, Run&& run) {
    if (inner.numel == 0) return;
    const int64_t count = inner.inner_size();
    const int64_t stride = inner.inner_stride(0);
    const auto mine = row_stripes(team, inner.numel / count, count);
    with_stride(stride, [&](auto step) {
        if (mine.rows.first == 0) run(base, mine.elements, step);
        for (int64_t row = mine.rows.first == 0 ? mine.rows.step : mine.rows.first; row < mine.rows.end;
             row += mine.rows.step)
            run(base + inner.offset(row * count), mine.elements, step);
    });
}

// One fold per output: `Fold` has State, start(), step(State, value), join(State, State) and finish(State, count).
template <class Fold, class T, class TeamOrAlone>
DIOPI_HD inline typename Fold::State fold_elements(const Fold& fold, const Space<1>& inner, const T* base,
                                                   const TeamOrAlone& team) {
    using State = typename Fold::State;
    State total = fold.start();
    for_each_run(inner, base, team, [&](const T* values, auto mine, auto stride) {
        const State run = fold_of_run(
            mine, fold.start(), [&](State state, int64_t k) { return fold.step(state, values[k * stride]); },
            [&](State a, State b) { return fold.join(a, b); });
        total = fold.join(total, run);
    });
    return team.reduce(total, [&](const auto& a, const auto& b) { return fold.join(a, b); });
}

template <class Fold, class T>
struct FoldTask {
    ReductionSpace<1> space;
    TensorView out;
    const T* input;
    Fold fold;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<2> at = space.outer.offsets(i);
        const typename Fold::State state = fold_elements(fold, space.inner, input + at.at[1], team);
        if (team.rank() == 0) store_as(out, at.at[0], fold.finish(state, space.inner.numel));
    }
};

// Neighbouring outputs at a time, where the input's memory runs along the outputs: each row is then read once.
template <class Fold, class T>
struct ColumnFoldTask {
    static constexpr int kColumns = 64;

    ReductionSpace<1> space;
    TensorView out;
    const T* input;
    Fold fold;

    DIOPI_HD int64_t blocks_of_a_run() const { return (space.outer.inner_size() + kColumns - 1) / kColumns; }
    int64_t blocks() const { return space.outer.numel / space.outer.inner_size() * blocks_of_a_run(); }

    DIOPI_HD void operator()(int64_t block) const {
        const int64_t length = space.outer.inner_size();
        const int64_t run = block / blocks_of_a_run();
        const int64_t column = (block - run * blocks_of_a_run()) * kColumns;
        const int64_t first = run * length + column;
        const Offsets<2> base = space.outer.offsets(first);
        const int width = static_cast<int>(length - column < kColumns ? length - column : kColumns);
        typename Fold::State states[kColumns];
        for (int c = 0; c < kColumns; ++c) states[c] = fold.start();
        if (width == kColumns) {
            fold_run(states, input + base.at[1], std::integral_constant<int, kColumns>{});
        } else {
            fold_run(states, input + base.at[1], width);
        }
        const int64_t step = space.outer.inner_stride(0);
        for (int c = 0; c < width; ++c) {
            store_as(out, base.at[0] + c * step, fold.finish(states[c], space.inner.numel));
        }
    }

    template <class Width>
    DIOPI_HD void fold_run(typename Fold::State* states, const T* base, Width width) const {
        for_each_run(space.inner, base, Alone{}, [&](const T* values, auto rows, auto stride) {
            for (int64_t k = 0; k < rows.end; ++k) {
                const T* row = values + k * stride;
                for (int c = 0; c < width; ++c) states[c] = fold.step(states[c], row[c]);
            }
        });
    }
};

// Float sums are kept in double: exact enough for any size and any order. Integers wrap, as in torch.
template <class T>
struct SumFold {
    using State = std::conditional_t<is_float<T>, double, uint64_t>;
    using Result = std::conditional_t<is_float<T>, double, int64_t>;
    DIOPI_HD State start() const { return State(0); }
    DIOPI_HD State step(State sum, T value) const { return sum + cast<State>(value); }
    DIOPI_HD State join(State a, State b) const { return a + b; }
    DIOPI_HD Result finish(State sum, int64_t) const { return static_cast<Result>(sum); }
};

// The elements of an output in parts, so that few outputs keep many threads busy; each part leaves its state.
template <class Fold, class T>
struct PartFoldTask {
    ReductionSpace<1> space;  // inner: the elements of a part
    Space<1> last;            // of the last part
    int64_t parts;
    int64_t step;  // from one part to the next
    const T* input;
    typename Fold::State* states;  // [part, output]
    Fold fold;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const int64_t part = i / space.outer.numel;
        const T* base = input + space.outer.offsets(i - part * space.outer.numel).at[1] + part * step;
        const Space<1>& inner = part + 1 < parts ? space.inner : last;
        const typename Fold::State state = fold_elements(fold, inner, base, team);
        if (team.rank() == 0) states[i] = state;
    }
};

template <class Fold>
struct JoinPartsTask {
    Space<2> outputs;
    TensorView out;
    int64_t parts;
    int64_t count;  // of the elements of an output
    const typename Fold::State* states;
    Fold fold;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        typename Fold::State state = fold.start();
        for (int64_t part = team.rank(); part < parts; part += team.size())
            state = fold.join(state, states[part * outputs.numel + i]);
        state = team.reduce(state, [&](const auto& a, const auto& b) { return fold.join(a, b); });
        if (team.rank() == 0) store_as(out, outputs.offset(i), fold.finish(state, count));
    }
};

// Into how many parts the elements of an output fall, by its sizes alone, so that results are those of any chip.
inline int64_t wanted_parts(const ReductionSpace<1>& space, bool scattered) {
    constexpr int64_t teams = 1 << 10;  // that keep a chip busy
    constexpr int64_t threads = 256;    // of a team, or teams of a thread each where the elements are scattered
    constexpr int64_t shortest = 32;    // elements of a thread
    const int64_t wanted = teams * (scattered ? threads : 1) / space.outer.numel;
    const int64_t possible = space.inner.numel / (shortest * (scattered ? 1 : threads));
    return wanted < possible ? wanted : possible;
}

// The longest of the reduced dimensions is cut.
template <class T, class Fold>
void fold_by_teams(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input,
                   const ReductionSpace<1>& space, const Fold& fold) {
    if (space.outer.numel == 0) return;
    const bool scattered = along_outputs(space, kNeighbours);
    int along = 0;
    for (int d = 1; d < space.inner.ndim; ++d) along = space.inner.sizes[d] > space.inner.sizes[along] ? d : along;
    const int64_t longest = space.inner.ndim == 0 ? 1 : space.inner.sizes[along];
    const int64_t wanted = wanted_parts(space, scattered);
    if (wanted <= 1 || longest <= 1) {
        for_each_by_teams(ctx, space.outer.numel, team_work(space), FoldTask<Fold, T>{space, out, input.as<T>(), fold});
        return;
    }
    const int64_t length = wanted < longest ? (longest + wanted - 1) / wanted : 1;
    const int64_t parts = (longest + length - 1) / length;
    const auto cut = [&](int64_t size) {
        Space<1> part = space.inner;
        part.numel = part.numel / longest * size;
        part.sizes[along] = size;
        return part;
    };
    using State = typename Fold::State;
    State* const states = workspace_of<State>(ctx, parts * space.outer.numel);
    const PartFoldTask<Fold, T> task{{space.outer, cut(length)}, cut(longest - (parts - 1) * length), parts,
                                     length * space.inner.strides[0][along], input.as<T>(), states, fold};
    for_each_by_teams(ctx, parts * space.outer.numel, scattered ? 1 : task.space.inner.numel, task);
    for_each_by_teams(ctx, space.outer.numel, parts,
                      JoinPartsTask<Fold>{space.outer, out, parts, space.inner.numel, states, fold});
}

template <class T, class Fold>
void fold_alone(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input,
                const ReductionSpace<1>& space, const Fold& fold) {
    if constexpr (is_float<T>) {  // integers are rarely reduced in bulk, and each form costs compile time
        using Columns = ColumnFoldTask<Fold, T>;
        if (along_outputs(space, 16)) {
            const Columns task{space, out, input.as<T>(), fold};
            for_each(ctx, task.blocks(), task);
            return;
        }
    }
    for_each_by_teams(ctx, space.outer.numel, 1, FoldTask<Fold, T>{space, out, input.as<T>(), fold});
}

template <class T, class Fold>
void launch_fold(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, DimSet dims,
                 const Fold& fold) {
    require_storable(out);
    const ReductionSpace<1> space = reduction_space(out, input, dims);
    if constexpr (Team::kAlone) {
        fold_alone<T>(ctx, out, input, space, fold);
    } else {
        fold_by_teams<T>(ctx, out, input, space, fold);
    }
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_REDUCE_H_
