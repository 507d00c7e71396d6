// Running sums along lines: a thread for each line, or for each chunk of one where lines are few and long.
#ifndef DIOPI_KERNELS_CORE_SCAN_H_
#define DIOPI_KERNELS_CORE_SCAN_H_

#include <cstdint>

#include "team.h"
#include "workspace.h"

namespace diopi::kernels {

constexpr int64_t kScanChunk = 32;
constexpr int64_t kShortScan = 64;       // elements that are no work for more threads than one
constexpr int64_t kManyLines = 1 << 16;  // so many threads fill any chip

// `Values` has State, start(line), which says where a line is, load(start, k) and store(start, k, sum).
template <class Values>
struct ScanTask {
    using State = typename Values::State;
    Values values;
    int64_t lines, length, chunk;
    State* sums;  // [chunk, line], of all elements up to a chunk's last; null where a line is one chunk

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t number = i / lines, begin = number * chunk;
        const auto at = values.start(i - number * lines);
        State sum = number == 0 ? State(0) : sums[i - lines];
        for (int64_t k = begin; k < begin + chunk && k < length; ++k) {
            sum += values.load(at, k);
            values.store(at, k, sum);
        }
    }
};

template <class Values>
struct ChunkSumTask {
    ScanTask<Values> scan;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t number = i / scan.lines, begin = number * scan.chunk;
        const auto at = scan.values.start(i - number * scan.lines);
        typename Values::State sum(0);
        for (int64_t k = begin; k < begin + scan.chunk && k < scan.length; ++k) sum += scan.values.load(at, k);
        scan.sums[i] = sum;
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

// Stores the sum of the elements [0, k] at each k. The order of additions depends on the sizes alone.
template <class Values>
void scan(Context ctx, int64_t lines, int64_t length, const Values& values) {
    if constexpr (!Team::kAlone) {
        if (length > kShortScan && lines < kManyLines) {
            const int64_t chunks = (length + kScanChunk - 1) / kScanChunk;
            auto* const sums = workspace_of<typename Values::State>(ctx, lines * chunks);
            const ScanTask<Values> task{values, lines, length, kScanChunk, sums};
            for_each(ctx, lines * chunks, ChunkSumTask<Values>{task});
            scan(ctx, lines, chunks, RunningSums<typename Values::State>{sums, lines});
            for_each(ctx, lines * chunks, task);
            return;
        }
    }
    for_each(ctx, lines, ScanTask<Values>{values, lines, length, length, nullptr});
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_SCAN_H_
