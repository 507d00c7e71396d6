// Rows of memory by packs: what falls to one thread of a team, by whole accesses, and read once where it fits registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device_code.h"
#include "core/team.h"
#include "packed.h"
#include "rows.h"

namespace diopi::kernels {

// Packs of a row that a thread holds in registers, and elements of one pack.
constexpr int kHeldPacks = 4;
template <class T>
constexpr int kRowPack = 16 / static_cast<int>(sizeof(T));
template <>
inline constexpr int kRowPack<void> = 1;  // elements of several types

// What a thread sums up few elements in, and a team its threads' sums: halves have fewer digits than either.
template <class T>
using RowSum = std::conditional_t<is_half<T>, float, double>;

// The packs of a row that fall to one thread. With held > 0 these are at most `held` and each has a slot of its own, which
// fetch(slot, column) fills before the first pass; else there is one slot, filled again in each pass.
template <int width, int held>
struct RowPacks {
    static constexpr bool kHeld = held > 0;
    static constexpr int kSlots = kHeld ? held : 1;

    int64_t first, step, end;

    DIOPI_HD RowPacks(const Team& team, int64_t columns)
        : first(team.rank() * width),
          step(team.size() * width),
          end(columns) {}

    template <class Fetch>
    DIOPI_HD_INLINED void hold(Fetch&& fetch) const {
        if constexpr (kHeld) visit_slots(fetch);
    }

    // Calls body(slot, column) for each pack.
    template <class Fetch, class Body>
    DIOPI_HD_INLINED void each(Fetch&& fetch, Body&& body) const {
        if constexpr (kHeld) {
            visit_slots(body);
        } else {
            for (int64_t column = first; column < end; column += step) {
                fetch(0, column);
                body(0, column);
            }
        }
    }

    // The largest value(slot, column, k), at least `least`; NaN where there is one.
    template <class C, class Fetch, class Value>
    DIOPI_HD_INLINED C largest(C least, Fetch&& fetch, Value&& value) const {
        each(fetch, [&](int slot, int64_t column) {
            DIOPI_UNROLL
            for (int k = 0; k < width; ++k) least = Larger{}(least, static_cast<C>(value(slot, column, k)));
        });
        return least;
    }

    // The sum of term(slot, column, k) over the elements column + k of this thread: those of a pack first.
    template <class Sum, class Fetch, class Term>
    DIOPI_HD_INLINED Sum sum(Fetch&& fetch, Term&& term) const {
        Sum total{};
        each(fetch, [&](int slot, int64_t column) {
            Sum few = term(slot, column, 0);
            DIOPI_UNROLL
            for (int k = 1; k < width; ++k) few = few + term(slot, column, k);
            total = total + few;
        });
        return total;
    }

private:
    template <class Body>
    DIOPI_HD_INLINED void visit_slots(Body&& body) const {
        DIOPI_UNROLL
        for (int slot = 0; slot < kSlots; ++slot) {
            const int64_t column = first + slot * step;
            if (column < end) body(slot, column);
        }
    }
};

// Calls f(packs) with what falls to this thread of a row: held where it fits into so many slots.
template <int width, int held = kHeldPacks, class F>
DIOPI_HD_INLINED void with_row_packs(const Team& team, int64_t columns, F&& f) {
    if (columns <= held * width * team.size()) {
        f(RowPacks<width, held>(team, columns));
    } else {
        f(RowPacks<width, 0>(team, columns));
    }
}

// How many threads could work on a row of packs: eight to a thread make it hold kHeldPacks of them.
constexpr int64_t packed_work(int64_t columns, int width) { return columns * 8 / (int64_t{width} * kHeldPacks); }

// Whether a pack may begin at `pointer`.
DIOPI_HD inline bool starts_pack(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

// Whether runs of `count` elements, `steps` apart, are whole packs of each operand; `outer` says where they begin.
template <int N>
bool has_packed_runs(const Space<N>& outer, int64_t count, const int64_t (&steps)[N], const TensorView (&operands)[N],
                     int width) {
    if (count % width != 0) return false;
    for (int n = 0; n < N; ++n) {
        if (!operands[n].defined()) continue;
        if (steps[n] != 1 || !starts_pack(operands[n].data)) return false;
        for (int d = 0; d < outer.ndim; ++d) {
            if (outer.strides[n][d] % width != 0) return false;
        }
    }
    return true;
}

// Whether each group is one run of memory of each operand, in whole packs.
template <int N>
bool has_packed_rows(const Rows<N>& rows, const TensorView (&operands)[N], int width) {
    if (rows.inner.ndim != 1) return false;
    int64_t steps[N];
    for (int n = 0; n < N; ++n) steps[n] = rows.inner.inner_stride(n);
    return has_packed_runs(rows.outer, rows.inner.numel, steps, operands, width);
}

}  // namespace diopi::kernels
