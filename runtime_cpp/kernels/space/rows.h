// Rows: the index space of a normalization, split into groups (what is normalized alone) and the elements of each.
#pragma once

#include "core/team.h"
#include "core/tensor.h"
#include "index.h"
#include "strides.h"

namespace diopi::kernels {

template <int N>
struct Rows {
    Space<N> outer;  // one position per group
    Space<N> inner;  // the elements of a group
};

// `dims` are the outer dimensions, one bit each. Operands broadcast to the first one; one that is undefined has no
// strides.
template <int N>
Rows<N> rows_of(const TensorView (&operands)[N], uint32_t dims) {
    const TensorView& shape = operands[0];
    Rows<N> rows;
    for (int d = 0; d < shape.ndim; ++d) {
        int64_t strides[N];
        for (int n = 0; n < N; ++n) {
            const int at = d - (shape.ndim - operands[n].ndim);
            const bool there = operands[n].defined() && at >= 0 && operands[n].sizes[at] != 1;
            require(!there || operands[n].sizes[at] == shape.sizes[d],
                    "size %lld does not broadcast to %lld in a normalization",
                    static_cast<long long>(there ? operands[n].sizes[at] : 1), static_cast<long long>(shape.sizes[d]));
            strides[n] = there ? operands[n].strides[at] : 0;
        }
        ((dims >> d & 1u) != 0 ? rows.outer : rows.inner).append(shape.sizes[d], strides);
    }
    coalesce(rows.outer);
    coalesce(rows.inner);
    return rows;
}

// Calls run(offsets, elements) for each run of the fastest inner dimension of group `base` in which this thread of a
// team has elements.
template <int N, class TeamOrAlone, class Run>
DIOPI_HD_INLINED void for_each_inner_run(const Space<N>& inner, const Offsets<N>& base, const TeamOrAlone& team,
                                         Run&& run) {
    if (inner.numel == 0) return;
    const int64_t count = inner.inner_size();
    const auto mine = row_stripes(team, inner.numel / count, count);
    for (int64_t r = mine.rows.first; r < mine.rows.end; r += mine.rows.step) {
        Offsets<N> at = inner.run_offsets(r);
        for (int n = 0; n < N; ++n) at.at[n] += base.at[n];
        run(at, mine.elements);
    }
}

// Where element k of group `base` is.
template <int N>
DIOPI_HD_INLINED Offsets<N> element_of(const Space<N>& inner, const Offsets<N>& base, int64_t k) {
    Offsets<N> at = inner.offsets(k);
    for (int n = 0; n < N; ++n) at.at[n] += base.at[n];
    return at;
}

// Sums that one pass gives.
template <class Sum>
struct TwoSums {
    Sum first = 0, second = 0;

    template <class Wider>
    DIOPI_HD explicit operator TwoSums<Wider>() const {
        return {first, second};
    }
    DIOPI_HD TwoSums operator+(const TwoSums& other) const { return {first + other.first, second + other.second}; }
};

// f(value) summed over one operand of a group; each thread gets the sum, of the type that f gives.
template <class Access, int N, class TeamOrAlone, class F>
DIOPI_HD_INLINED auto sum(const Space<N>& inner, const Offsets<N>& base, int operand, const TensorView& values,
                          const TeamOrAlone& team, F&& f) {
    const auto at = [&](int64_t offset) { return f(Access::template load<double>(values, offset)); };
    decltype(at(0)) total{};
    for_each_inner_run(inner, base, team, [&](const Offsets<N>& first, const auto& mine) {
        with_stride(inner.inner_stride(operand), [&](auto stride) {
            constexpr int lanes = kLanesOf<decltype(stride)>;
            total = total + sum_of_run<lanes>(mine, [&](int64_t k) { return at(first.at[operand] + k * stride); });
        });
    });
    return team.reduce(total, Plus{});
}

}  // namespace diopi::kernels
