// Rows of a matrix of scores: what attention by matrix products does between the products, in place.
#pragma once

#include "attention_pairs.h"
#include "core/team.h"
#include "space/packed_rows.h"

namespace diopi::kernels {

// A part of the scores: of some sequences all heads, some queries, and the keys that any of these queries sees.
struct ScoreBlock {
    int64_t sequence;  // the first of them
    int64_t sequences;
    Range queries;
    Range keys;

    DIOPI_HD int64_t rows(const Attention& a) const { return sequences * a.q.sizes[2] * length(queries); }
    // Elements from one row to the next: teams read whole packs.
    DIOPI_HD static int64_t pitch(int64_t keys) {
        constexpr int64_t pack = Team::kAlone ? 1 : kRowPack<float>;
        return (keys + pack - 1) / pack * pack;
    }
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
    int64_t first_key;
    int64_t count;
    int64_t place;  // of the query in the row
    Range seen;     // within the row, what the window leaves
    C slope;

    DIOPI_HD ScoreRow(const Attention& attention, const ScoreBlock& block, int64_t row)
        : a(attention),
          query(block.query(attention, row)),
          first_key(block.keys.begin),
          count(length(block.keys)),
          place(place_of(a, query) - first_key),
          seen(within(count, place - a.left, place + a.right)),
          slope(a.slopes.defined() ? number_at<C>(a.slopes, query.sequence, query.head) : C(0)) {
        if (seen.end < seen.begin) seen.end = seen.begin;
    }

    DIOPI_HD bool sees(int64_t k) const { return k >= seen.begin && k < seen.end; }

    // Takes off what the slopes say; a hidden key gets a score of minus infinity.
    DIOPI_HD C adjusted(int64_t k, C score) const {
        if (!sees(k)) return score;
        const C moved = score - slope * static_cast<C>(math::abs(k - place));
        return hidden(a, query, first_key + k) ? -math::infinity<C> : moved;
    }
    DIOPI_HD bool adjusts() const { return a.slopes.defined() || a.mask.defined(); }

    DIOPI_HD bool drops() const { return a.dropout.probability != 0; }
    // Where dropout draws for key k.
    DIOPI_HD int64_t position(int64_t k) const {
        const int64_t matrix = query.sequence * a.q.sizes[2] + query.head;
        return (matrix * a.queries.longest + query.index) * a.keys.longest + first_key + k;
    }

    // No key is left; what else is minus infinity has no softmax, and becomes NaN.
    DIOPI_HD bool is_empty(C greatest) const {
        return length(seen) == 0 || (a.mask.defined() && greatest == -math::infinity<C>);
    }
};

// What falls to one thread of a row of scores, and of the row that belongs to it where there are two: in memory. Bodies
// and steps are functions of a score that is seen and of what belongs to it, bodies of its key before that.
template <class C, int count, class Elements>
struct RowInMemory {
    static constexpr bool kHasNeighbours = false;  // comes from one key to the next

    C* rows[count];  // from the first key on that is seen
    int64_t first;
    Elements mine;

    DIOPI_HD RowInMemory(const ScoreRow<C>& row, C* const (&all)[count], const Team& team)
        : first(row.seen.begin),
          mine(stripe_of(team, length(row.seen))) {
        for (int n = 0; n < count; ++n) {
            rows[n] = all[n] + first;
            if (length(row.seen) == row.count) continue;
            kernels::each(stripe_of(team, row.count), [&](int64_t k) {
                if (!row.sees(k)) all[n][k] = C(0);
            });
        }
    }
    template <class Body>
    DIOPI_HD_INLINED void each(Body&& body) {
        C *const scores = rows[0], *const others = rows[count - 1];
        kernels::each(mine, [&](int64_t k) { body(first + k, scores[k], others[k]); });
    }
    template <class State, class Step, class Join>
    DIOPI_HD_INLINED State fold(const State& start, Step&& step, const Join& join) {
        const C *const scores = rows[0], *const others = rows[count - 1];
        const auto next = [&](const State& state, int64_t k) { return step(state, scores[k], others[k]); };
        return fold_of_run(mine, start, next, join);
    }
    DIOPI_HD void store(const Team&) {}
};

// The same in registers, read and written once; keys beside those that are seen have scores of minus infinity.
template <class C, int count>
struct RowInRegisters {
    static constexpr bool kHasNeighbours = true;
    static constexpr int kWidth = kRowPack<C>;
    using Packs = RowPacks<kWidth, kHeldPacks>;

    const ScoreRow<C>& row;
    C* const (&rows)[count];
    Packs mine;
    Pack<C, kWidth> held[count][kHeldPacks];

    DIOPI_HD RowInRegisters(const ScoreRow<C>& of, C* const (&all)[count], const Team& team)
        : row(of),
          rows(all),
          mine(team, of.seen.end) {
        for (int n = 0; n < count; ++n)
            mine.hold([&](int slot, int64_t column) { held[n][slot] = load_pack<C, kWidth>(rows[n] + column); });
        each([&](int64_t k, C& score, C& other) {
            if (row.sees(k)) return;
            other = C(0);
            score = -math::infinity<C>;
        });
    }
    template <class Body>
    DIOPI_HD_INLINED void each(Body&& body) {
        mine.hold([&](int slot, int64_t column) {
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) body(column + k, held[0][slot].at[k], held[count - 1][slot].at[k]);
        });
    }
    template <class State, class Step, class Join>
    DIOPI_HD_INLINED State fold(State state, Step&& step, const Join&) {
        each([&](int64_t, const C& score, const C& other) { state = step(state, score, other); });
        return state;
    }
    // With zeros for the keys that are not seen.
    DIOPI_HD void store(const Team& team) {
        Packs(team, row.count).hold([&](int slot, int64_t column) {
            for (int n = 0; n < count; ++n) {
                DIOPI_UNROLL
                for (int k = 0; k < kWidth; ++k) {
                    if (!row.sees(column + k)) held[n][slot].at[k] = C(0);
                }
                store_pack<C, kWidth>(rows[n] + column, held[n][slot]);
            }
        });
    }
};

// The largest value(score, other) of all threads.
template <class C, class Cells, class Value>
DIOPI_HD_INLINED C largest(Cells& cells, const Team& team, Value&& value) {
    const auto step = [&](C best, C score, C other) { return Larger{}(best, value(score, other)); };
    return team.reduce(cells.fold(-math::infinity<C>, step, Larger{}), Larger{});
}

template <class C, class Cells, class Term>
DIOPI_HD_INLINED double sum(Cells& cells, const Team& team, Term&& term) {
    const auto step = [&](double sum, C score, C other) { return sum + static_cast<double>(term(score, other)); };
    return team.reduce(cells.fold(0.0, step, Plus{}), Plus{});
}

// Calls body(keeps, score, other) as dropout draws; neighbours share a draw.
template <class C, class Cells, class Body>
DIOPI_HD_INLINED void drop(const ScoreRow<C>& row, Cells& cells, Body&& body) {
    const RandomStream stream = row.a.dropout.stream.now();
    const uint64_t dropped = dropped_words(row.a.dropout.probability);
    RandomBits bits;
    cells.each([&](int64_t k, C& score, C& other) {
        const int64_t position = row.position(k), word = position % RandomBits::kWords;
        if (!Cells::kHasNeighbours || k % kRowPack<C> == 0 || word == 0)
            bits = stream.draw(position / RandomBits::kWords);
        body(bits.word(static_cast<int>(word)) >= dropped, score, other);
    });
}

// A row for each query of a block. Kernel::weigh(row, cells, team, greatest) changes one by its cells, RowInMemory or the
// like, from the greatest score on; none is left to it where that is empty.
template <class C, int count, class Kernel>
struct WeighTask {
    Attention a;
    ScoreBlock block;
    C* rows[count];

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const ScoreRow<C> row(a, block, i);
        C* all[count];
        for (int n = 0; n < count; ++n) all[n] = rows[n] + i * ScoreBlock::pitch(row.count);
        if constexpr (!Team::kAlone) {
            if (row.count <= kHeldPacks * kRowPack<C> * team.size())
                return weigh(row, RowInRegisters<C, count>(row, all, team), team);
        }
        weigh(row, RowInMemory<C, count, decltype(stripe_of(team, 0))>(row, all, team), team);
    }

    template <class Cells>
    DIOPI_HD_INLINED static void weigh(const ScoreRow<C>& row, Cells&& cells, const Team& team) {
        if (row.adjusts()) cells.each([&](int64_t k, C& score, C&) { score = row.adjusted(k, score); });
        const C greatest = largest<C>(cells, team, [](C score, C) { return score; });
        const bool empty = row.is_empty(greatest);
        if (empty) cells.each([](int64_t, C& score, C& other) { score = other = C(0); });
        if (!empty) cells.each([&](int64_t, C& score, C&) { score = math::exp(score - greatest); });
        Kernel::weigh(row, cells, team, greatest);
        cells.store(team);
    }
};

// The powers of scores become the weights of values.
struct Weigh {
    template <class C, class Cells>
    DIOPI_HD_INLINED static void weigh(const ScoreRow<C>& row, Cells& cells, const Team& team, C greatest) {
        const double total = sum<C>(cells, team, [](C power, C) { return power; });
        const Attention& a = row.a;
        if (a.statistics.log_sum.defined() && team.rank() == 0)
            a.statistics.store(statistic_at(a, row.query), static_cast<double>(greatest), total);
        const C scale = total == 0 ? C(0) : static_cast<C>(1 / total);
        cells.each([&](int64_t, C& power, C&) { power *= scale; });
        if (!row.drops()) return;
        const C kept = static_cast<C>(a.dropout.kept());
        drop(row, cells, [&](bool keeps, C& weight, C&) { weight = keeps ? weight * kept : C(0); });
    }
};

// They become the weights of values, and the gradients of weights those of products of queries and keys. The mean of the
// weights' gradients, which is taken off each, is worked out as its distance from the gradient of the greatest weight, of
// several the largest one: where that weight is nearly one, the mean itself would leave no digits of the difference.
// What dropout drops is drawn once: the powers of such keys are negative meanwhile.
struct WeighBackward {
    template <class C, class Cells>
    DIOPI_HD_INLINED static void weigh(const ScoreRow<C>& row, Cells& cells, const Team& team, C) {
        const C kept = static_cast<C>(row.a.dropout.kept()), scale = static_cast<C>(row.a.scale);
        if (row.drops()) {
            drop(row, cells, [&](bool keeps, C& power, C& slope) {
                slope = keeps ? slope * kept : C(0);
                power = keeps ? power : -power;
            });
        }
        const auto at_greatest = [](C power, C slope) { return math::abs(power) == C(1) ? slope : -math::infinity<C>; };
        const C reference = largest<C>(cells, team, at_greatest);
        const double total = sum<C>(cells, team, [](C power, C) { return math::abs(power); });
        if (total == 0) return;
        const auto distance = [&](C power, C slope) { return math::abs(power) * (slope - reference); };
        const C mean = static_cast<C>(sum<C>(cells, team, distance) / total), share = static_cast<C>(1 / total);
        cells.each([&](int64_t, C& power, C& slope) {
            const C weight = math::abs(power) * share;
            slope = weight * (slope - reference - mean) * scale;
            power = power < C(0) ? C(0) : weight * kept;
        });
    }
};

}  // namespace diopi::kernels
