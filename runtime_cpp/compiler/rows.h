// launch_rows(stream, rows, columns, body): the loops of a fused kernel that reduces each row.
//
// body(row, team) computes one row. A device gives each row a team of threads; a host takes short rows together.
#ifndef DIOPI_COMPILER_ROWS_H_
#define DIOPI_COMPILER_ROWS_H_

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/folds.h"
#include "core/strides.h"
#include "core/team.h"
#include "runs.h"

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

template <class Body>
diopiError_t launch_rows(diopiStreamHandle_t stream, int64_t rows, int64_t columns, const Body& body) {
    if (rows <= 0) return diopiSuccess;
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

}  // namespace diopi::compiled

#endif  // DIOPI_COMPILER_ROWS_H_
