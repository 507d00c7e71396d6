// Running sums along lines: a team or a thread for each line, or for each chunk of one where lines are few and long.
#pragma once

#include <cstdint>

#include "core/team.h"
#include "core/workspace.h"

namespace diopi::kernels {

// `Values` has State, start(line), which says where a line is, load(start, k) and store(start, k, sum).
template <class Values>
struct ScanTask {
    using State = typename Values::State;
    static constexpr int kOwn = Team::kAlone ? 1 : 4;  // elements that a thread adds up at a time

    Values values;
    int64_t lines, length, chunk;
    State* sums;      // [chunk, line]; null where a line is one chunk
    bool are_totals;  // they are those of all elements up to a chunk's last, else of the chunk's own

    DIOPI_HD int64_t end_of(int64_t begin) const { return begin + chunk < length ? begin + chunk : length; }

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const int64_t number = i / lines, line = i - number * lines, begin = number * chunk, end = end_of(begin);
        const int64_t before = are_totals && number > 0 ? number - 1 : 0;
        State sum(0), all;
        for (int64_t c = before + team.rank(); c < number; c += team.size()) sum += sums[c * lines + line];
        sum = team.reduce(sum, Plus{});
        const auto at = values.start(line);
        for (int64_t first = begin; first < end; first += team.size() * kOwn) {
            const int64_t k = first + team.rank() * kOwn;
            State own[kOwn], total(0);
            DIOPI_UNROLL
            for (int n = 0; n < kOwn; ++n) total += own[n] = k + n < end ? values.load(at, k + n) : State(0);
            State upto = sum + team.scan(total, State(0), Plus{}, &all);
            DIOPI_UNROLL
            for (int n = 0; n < kOwn; ++n) {
                upto += own[n];
                if (k + n < end) values.store(at, k + n, upto);
            }
            sum += all;
        }
    }
};

template <class Values>
struct ChunkSumTask {
    ScanTask<Values> scan;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const int64_t number = i / scan.lines, begin = number * scan.chunk, end = scan.end_of(begin);
        const auto at = scan.values.start(i - number * scan.lines);
        typename Values::State sum(0);
        for (int64_t k = begin + team.rank(); k < end; k += team.size()) sum += scan.values.load(at, k);
        sum = team.reduce(sum, Plus{});
        if (team.rank() == 0) scan.sums[i] = sum;
    }
};

// Sums in place, [length, line].
template <class S>
struct RunningSums {
    using State = S;
    State* sums;
    int64_t lines;

    DIOPI_HD State* start(int64_t line) const { return sums + line; }
    DIOPI_HD State load(const State* at, int64_t k) const { return at[k * lines]; }
    DIOPI_HD void store(State* at, int64_t k, State sum) const { at[k * lines] = sum; }
};

// Stores the sum of the elements [0, k] at each k. The order of additions depends on the sizes alone. Where the lines
// lie `beside` each other, threads that have one each read whole runs of memory.
template <class Values>
void scan(Context ctx, int64_t lines, int64_t length, const Values& values, bool beside = false) {
    constexpr int64_t most_chunks = 1024;  // so many sums one team adds up quickly
    const int64_t least = beside ? 32 : length < 2048 * most_chunks ? 2048 : (length - 1) / most_chunks + 1;
    const bool whole = Team::kAlone || length <= 2 * least || lines >= (beside ? 1 << 16 : 1 << 10);
    const int64_t chunk = whole ? length : least, chunks = whole ? 1 : (length - 1) / chunk + 1;
    const int64_t work = beside ? 1 : chunk;
    auto* const sums = whole ? nullptr : workspace_of<typename Values::State>(ctx, lines * chunks);
    const ScanTask<Values> task{values, lines, length, chunk, sums, beside};
    if constexpr (!Team::kAlone) {
        if (!whole) for_each_by_teams(ctx, lines * chunks, work, ChunkSumTask<Values>{task});
        if (!whole && beside) scan(ctx, lines, chunks, RunningSums<typename Values::State>{sums, lines}, true);
    }
    for_each_by_teams(ctx, lines * chunks, work, task);
}

}  // namespace diopi::kernels
