// launch_rows(stream, rows, columns, body): the loops of a fused kernel that reduces each row.
//
// body(row, team) computes one row. A device gives each row a team of threads; a host takes short rows together.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/team.h"
#include "reduction/folds.h"
#include "runs.h"
#include "space/packed_rows.h"
#include "space/strides.h"

namespace diopi::compiled {

using kernels::Team;

template <class Body>
struct SeveralRows {
    Body body;
    int64_t rows, rows_each;

    DIOPI_HD void operator()(int64_t task, const Team& team = {}) const {
        const int64_t first = task * rows_each;
        const int64_t last = first + rows_each < rows ? first + rows_each : rows;
        for (int64_t row = first; row < last; ++row) body(row, team);
    }
};

#if defined(DIOPI_LAUNCHER_HAS_TEAMS)

// A team reads whole packs of one row.
template <class Body>
struct PackedRows {
    Body body;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const { body.pack(row, team); }
};

#endif

template <class Body>
diopiError_t launch_rows(diopiStreamHandle_t stream, int64_t rows, int64_t columns, const Body& body) {
    if (rows <= 0) return diopiSuccess;
#if defined(DIOPI_LAUNCHER_HAS_TEAMS)
    if constexpr (Body::kWidth > 1) {
        if (columns > 0 && body.packs())
            return launch::parallel_teams(stream, rows, kernels::packed_work(columns, Body::kWidth),
                                          PackedRows<Body>{body});
    }
#endif
    SeveralRows<Body> work{body, rows, 1};
    if constexpr (Team::kAlone) {
        if (columns < kStretch) work.rows_each = columns > 0 ? kStretch / columns : kStretch;
    }
    return launch::parallel_teams(stream, (rows + work.rows_each - 1) / work.rows_each, columns, work);
}

// The fold of value(j) over the columns j of a row, known to every thread of the team.
template <class Result, class Fold, class Elements, class Value>
DIOPI_HD inline Result folded(const Fold& fold, Elements mine, int64_t columns, const Team& team, Value&& value) {
    using State = typename Fold::State;
    const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
    const State own = kernels::fold_of_run(
        mine, fold.start(), [&](const State& state, int64_t j) { return fold.step(state, value(j)); }, join);
    return kernels::cast<Result>(fold.finish(team.reduce(own, join), columns));
}

// The fold of value(slot, column, k) over the elements column + k of a row's packs: those of a pack first, which saves the
// steps of a state that is wider than they are.
template <class Result, int width, class Fold, class Packs, class Fetch, class Value>
DIOPI_HD_INLINED Result folded_packs(const Fold& fold, const Packs& packs, int64_t columns, const Team& team,
                                     Fetch&& fetch, Value&& value) {
    using State = typename Fold::State;
    State own = fold.start();
    packs.each(fetch, [&](int slot, int64_t column) {
        auto few = value(slot, column, 0);
        DIOPI_UNROLL
        for (int k = 1; k < width; ++k) few = fold.pair(few, value(slot, column, k));
        own = fold.step(own, few);
    });
    const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
    return kernels::cast<Result>(fold.finish(team.reduce(own, join), columns));
}

}  // namespace diopi::compiled
