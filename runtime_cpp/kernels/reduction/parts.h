// Reductions: teams share the elements of each output. Where outputs are few, the elements of each are cut into parts,
// so that many teams have work; each part leaves a state, and the states of an output are joined.
#pragma once

#include <diopi/diopirt.h>

#include <type_traits>

#include "columns.h"
#include "core/team.h"
#include "core/workspace.h"
#include "space/index.h"

namespace diopi::kernels {

// What a team takes of an output's elements: a part of them, or all.
template <int N>
struct Part {
    const Space<N>& inner;
    Offsets<N> base;
    int64_t before = 0;  // elements of the output that come before those of the part
    int64_t run = 1;     // elements of the part between which none of another part lies
    int64_t gap = 0;     // and how many do then

    // Of the part's element k among those of the output.
    DIOPI_HD int64_t position(int64_t k) const { return before + k + k / run * gap; }
};

// All elements of output i; the operands of the inner space are the last ones of the outer space.
template <int M, int N>
DIOPI_HD inline Part<N> whole_of(const Space<M>& outer, const Space<N>& inner, int64_t i) {
    const Offsets<M> all = outer.offsets(i);
    Part<N> whole{inner, {}};
    for (int n = 0; n < N; ++n) whole.base.at[n] = all.at[M - N + n];
    return whole;
}

// A reduction has State, start(), join(State, State), state(output, part, team), which is the same in all threads,
// finish(output, State), which one thread calls, and `space` with the outputs as `outer` and their elements as `inner`.
template <class Reduction>
struct WholeTask {
    Reduction reduction;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const auto state = reduction.state(i, whole_of(reduction.space.outer, reduction.space.inner, i), team);
        if (team.rank() == 0) reduction.finish(i, state);
    }
};

template <class Reduction, int N>
struct PartTask {
    Reduction reduction;
    Space<N> part, last;  // the elements of a part, and of the last one
    int64_t parts, length, along;
    typename Reduction::State* states;  // [part, output]

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Space<N>& inner = reduction.space.inner;
        const int64_t number = i / reduction.space.outer.numel, output = i - number * reduction.space.outer.numel;
        const Space<N>& mine = number + 1 < parts ? part : last;
        int64_t below = 1;
        for (int64_t d = along + 1; d < inner.ndim; ++d) below *= inner.sizes[d];
        Part<N> elements{mine, whole_of(reduction.space.outer, inner, output).base, number * length * below,
                         mine.sizes[along] * below, (inner.sizes[along] - mine.sizes[along]) * below};
        for (int n = 0; n < N; ++n) elements.base.at[n] += number * length * inner.strides[n][along];
        const auto state = reduction.state(output, elements, team);
        if (team.rank() == 0) states[i] = state;
    }
};

template <class Reduction, class Kept>
struct JoinTask {
    Reduction reduction;
    int64_t parts, outputs;
    const Kept* states;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        auto state = reduction.start();
        for (int64_t part = team.rank(); part < parts; part += team.size())
            state = reduction.join(state, typename Reduction::State(states[part * outputs + i]));
        state = team.reduce(state, [&](const auto& a, const auto& b) { return reduction.join(a, b); });
        if (team.rank() == 0) reduction.finish(i, state);
    }
};

template <class Reduction, class Kept>
void join_parts(Context ctx, const Reduction& reduction, int64_t parts, int64_t outputs, const Kept* states) {
    for_each_by_teams(ctx, outputs, parts, JoinTask<Reduction, Kept>{reduction, parts, outputs, states});
}

// True where neighbouring outputs read neighbouring elements, as the sums of a matrix' columns do.
template <int M, int N>
bool along_outputs(const Space<M>& outer, const Space<N>& inner, int64_t neighbours) {
    return outer.inner_stride(M - 1) == 1 && inner.inner_stride(N - 1) != 1 && outer.inner_size() >= neighbours;
}

// Into how many parts the elements of an output fall, by sizes alone, so that results are those of any chip.
inline int64_t wanted_parts(int64_t outputs, int64_t elements, bool scattered) {
    constexpr int64_t teams = 1 << 10;  // that keep a chip busy
    constexpr int64_t threads = 256;    // of a team, or teams of a thread each where the elements are scattered
    constexpr int64_t fewest = 6, few = 16;  // parts whose time is worth that of joining them
    const int64_t wanted = teams * (scattered ? threads : 1) / outputs;
    const int64_t possible = elements / (scattered ? 32 : 32 * threads);  // so many elements for a thread
    const int64_t short_ones = scattered ? 0 : elements / (8 * threads);
    const int64_t sensible = possible < few && possible < short_ones ? (short_ones < few ? short_ones : few) : possible;
    const int64_t parts = wanted < sensible ? wanted : sensible;
    return parts < fewest ? 1 : parts;
}

// The first of the inner dimensions that gives parts enough is cut, so that a part has the others as wholes, or the longest.
template <class Reduction, class Joining, int M, int N>
void reduce_by_teams(Context ctx, const Reduction& reduction, const Joining& joining, const Space<M>& outer,
                     const Space<N>& inner) {
    if (outer.numel == 0) return;
    const bool scattered = along_outputs(outer, inner, kNeighbours);
    const int64_t wanted = wanted_parts(outer.numel, inner.numel, scattered);
    int along = 0;
    for (int d = 1; d < inner.ndim && inner.sizes[along] < 2 * wanted; ++d)
        along = inner.sizes[d] > inner.sizes[along] ? d : along;
    const int64_t longest = inner.ndim == 0 ? 1 : inner.sizes[along];
    if (wanted <= 1 || longest <= 1) {
        for_each_by_teams(ctx, outer.numel, scattered ? kScatteredWork : inner.numel, WholeTask<Reduction>{reduction});
        return;
    }
    const int64_t length = wanted < longest ? (longest + wanted - 1) / wanted : 1;
    const int64_t parts = (longest + length - 1) / length;
    const auto cut = [&](int64_t size) {
        Space<N> part = inner;
        part.numel = part.numel / longest * size;
        part.sizes[along] = size;
        return part;
    };
    auto* const states = workspace_of<typename Reduction::State>(ctx, parts * outer.numel);
    const PartTask<Reduction, N> task{reduction, cut(length), cut(longest - (parts - 1) * length), parts, length,
                                      along,     states};
    for_each_by_teams(ctx, parts * outer.numel, scattered ? 1 : task.part.numel, task);
    join_parts(ctx, joining, parts, outer.numel, states);
}

// `joining` is what of the reduction starts, joins and finishes: all of it, or what reductions of several types share.
template <class Reduction, class Joining>
void run_reduction(Context ctx, const Reduction& reduction, const Joining& joining) {
    if constexpr (Team::kAlone) {
        for_each(ctx, reduction.space.outer.numel, WholeTask<Reduction>{reduction});
    } else if constexpr (kReducesColumns<Reduction>) {
        const int64_t columns = reduction.space.outer.numel;
        const bool taken = reduce_columns(ctx, reduction, [&](int64_t parts, const auto* states) {
            join_parts(ctx, joining, parts, columns, states);
        });
        if (!taken) reduce_by_teams(ctx, reduction, joining, reduction.space.outer, reduction.space.inner);
    } else if constexpr (std::is_empty_v<typename Reduction::State>) {
        for_each_by_teams(ctx, reduction.space.outer.numel, 1, WholeTask<Reduction>{reduction});
    } else {
        reduce_by_teams(ctx, reduction, joining, reduction.space.outer, reduction.space.inner);
    }
}

template <class Reduction>
void run_reduction(Context ctx, const Reduction& reduction) {
    run_reduction(ctx, reduction, reduction);
}

}  // namespace diopi::kernels
