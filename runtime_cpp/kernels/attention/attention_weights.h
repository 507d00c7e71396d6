// Rows of a matrix of scores: what attention by matrix products does between the products, in place.
#pragma once

#include "attention_pairs.h"
#include "core/team.h"

namespace diopi::kernels {

// A part of the scores: of some sequences all heads, some queries, and the keys that any of these queries sees.
struct ScoreBlock {
    int64_t sequence;  // the first of them
    int64_t sequences;
    Range queries;
    Range keys;

    DIOPI_HD int64_t rows(const Attention& a) const { return sequences * a.q.sizes[2] * length(queries); }
    DIOPI_HD Query query(const Attention& a, int64_t row) const {
        const int64_t count = length(queries), heads = a.q.sizes[2];
        return query_at(a, sequence + row / count / heads, row / count % heads, queries.begin + row % count);
    }
};

// One row: the scores of a query, whose first is that of the block's first key.
template <class C>
struct ScoreRow {
    const Attention& a;
    Query query;
    C* scores;
    int64_t first_key;
    int64_t count;
    Range seen;  // within the row

    DIOPI_HD ScoreRow(const Attention& attention, const ScoreBlock& block, C* all, int64_t row)
        : a(attention),
          query(block.query(attention, row)),
          scores(all + row * length(block.keys)),
          first_key(block.keys.begin),
          count(length(block.keys)),
          seen(within(count, place_of(a, query) - a.left - first_key, place_of(a, query) + a.right - first_key)) {}

    // How many keys the window leaves.
    DIOPI_HD int64_t width() const { return seen.begin < seen.end ? length(seen) : 0; }
    DIOPI_HD C* values() const { return scores + seen.begin; }

    // Calls body(k) for the keys of this thread that the window leaves, k counted from there.
    template <class TeamOrAlone, class Body>
    DIOPI_HD_INLINED void for_each_seen(const TeamOrAlone& team, Body&& body) const {
        each(stripe_of(team, width()), body);
    }

    // Zero outside of the window.
    template <class TeamOrAlone>
    DIOPI_HD void clear_unseen(C* values, const TeamOrAlone& team) const {
        if (width() == count) return;
        each(stripe_of(team, count), [&](int64_t k) {
            if (k < seen.begin || k >= seen.end) values[k] = C(0);
        });
    }

    // Takes off what the slopes say; a hidden key gets a score of minus infinity.
    template <class TeamOrAlone>
    DIOPI_HD void adjust(const TeamOrAlone& team) const {
        if (!a.slopes.defined() && !a.mask.defined()) return;
        const C slope = a.slopes.defined() ? number_at<C>(a.slopes, query.sequence, query.head) : C(0);
        const int64_t first = first_key + seen.begin, place = place_of(a, query);
        C* const row = values();
        for_each_seen(team, [&](int64_t k) {
            const C moved = row[k] - slope * static_cast<C>(math::abs(first + k - place));
            row[k] = hidden(a, query, first + k) ? -math::infinity<C> : moved;
        });
    }

    // What dropout makes of the weight of key k, counted from the first that is seen.
    DIOPI_HD C factor(int64_t k) const {
        const int64_t matrix = query.sequence * a.q.sizes[2] + query.head;
        return static_cast<C>(
            a.dropout.factor((matrix * a.queries.longest + query.index) * a.keys.longest + first_key + seen.begin + k));
    }
    DIOPI_HD bool drops() const { return a.dropout.probability != 0; }

    template <class TeamOrAlone>
    DIOPI_HD C greatest(const TeamOrAlone& team) const {
        const C* const row = values();
        const auto at = [&](int64_t k) { return row[k]; };
        return width() == 0 ? -math::infinity<C>
                            : team.reduce(largest_of_run<C>(stripe_of(team, width()), at), Larger{});
    }

    // No key is left; what else is minus infinity has no softmax, and becomes NaN.
    DIOPI_HD bool is_empty(C greatest) const {
        return width() == 0 || (a.mask.defined() && greatest == -math::infinity<C>);
    }

    // Scores become powers, from the greatest on; gives their sum.
    template <class TeamOrAlone>
    DIOPI_HD double raise(C greatest, const TeamOrAlone& team) const {
        C* const row = values();
        for_each_seen(team, [&](int64_t k) { row[k] = math::exp(row[k] - greatest); });
        const auto power = [&](int64_t k) { return row[k]; };
        return team.reduce(static_cast<double>(sum_of_run(stripe_of(team, width()), power)), Plus{});
    }
};

// Scores become the weights of values.
template <class C>
struct WeighTask {
    Attention a;
    ScoreBlock block;
    C* scores;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const ScoreRow<C> row(a, block, scores, i);
        row.clear_unseen(row.scores, team);
        row.adjust(team);
        const C greatest = row.greatest(team);
        const bool empty = row.is_empty(greatest);
        const double sum = empty ? 0 : row.raise(greatest, team);
        if (a.statistics.log_sum.defined() && team.rank() == 0)
            a.statistics.store(statistic_at(a, row.query), static_cast<double>(greatest), sum);
        const C scale = static_cast<C>(1 / sum);
        C* const values = row.values();
        if (empty) {
            row.for_each_seen(team, [&](int64_t k) { values[k] = C(0); });
        } else if (row.drops()) {
            row.for_each_seen(team, [&](int64_t k) { values[k] *= scale * row.factor(k); });
        } else {
            row.for_each_seen(team, [&](int64_t k) { values[k] *= scale; });
        }
    }
};

// Scores become the weights of values, and the gradients of weights those of products of queries and keys. The mean of
// the weights' gradients, which is taken off each, is worked out as its distance from the gradient of the greatest
// weight: where that weight is nearly one, the mean itself would leave no digits of the difference.
template <class C>
struct WeighBackwardTask {
    Attention a;
    ScoreBlock block;
    C* scores;
    C* grads;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const ScoreRow<C> row(a, block, scores, i);
        C* const of_row = grads + i * row.count;
        row.clear_unseen(row.scores, team);
        row.clear_unseen(of_row, team);
        row.adjust(team);
        C* const values = row.values();
        C* const slopes = of_row + row.seen.begin;
        const C greatest = row.greatest(team);
        if (row.is_empty(greatest)) {
            row.for_each_seen(team, [&](int64_t k) { values[k] = slopes[k] = C(0); });
            return;
        }
        if (row.drops()) row.for_each_seen(team, [&](int64_t k) { slopes[k] *= row.factor(k); });
        const C reference = at_greatest(row, values, slopes, greatest, team);
        const double sum = row.raise(greatest, team);
        const auto distance = [&](int64_t k) { return values[k] * (slopes[k] - reference); };
        const auto mine = stripe_of(team, row.width());
        const double total = team.reduce(static_cast<double>(sum_of_run(mine, distance)), Plus{});
        const C mean = static_cast<C>(total / sum), share = static_cast<C>(1 / sum), scale = static_cast<C>(a.scale);
        row.for_each_seen(team, [&](int64_t k) {
            values[k] *= share;
            slopes[k] = values[k] * (slopes[k] - reference - mean) * scale;
        });
        if (row.drops()) row.for_each_seen(team, [&](int64_t k) { values[k] *= row.factor(k); });
    }

    // The gradient of the greatest weight; of several that are equal, the largest one.
    template <class TeamOrAlone>
    DIOPI_HD C at_greatest(const ScoreRow<C>& row, const C* values, const C* slopes, C greatest,
                           const TeamOrAlone& team) const {
        const auto at = [&](int64_t k) { return values[k] == greatest ? slopes[k] : -math::infinity<C>; };
        return team.reduce(largest_of_run<C>(stripe_of(team, row.width()), at), Larger{});
    }
};

}  // namespace diopi::kernels
