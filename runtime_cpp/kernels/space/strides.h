// Loops over runs of elements that become vector code on a host: the usual stride as a constant, and folds in chains
// of their own. Each takes all of a run, or what falls to one thread of a team.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device_code.h"

namespace diopi::kernels {

struct UnitStride {
    DIOPI_HD constexpr operator int64_t() const { return 1; }
};

struct UnitStrides {
    DIOPI_HD constexpr UnitStride operator[](int) const { return {}; }
};

// Calls f(stride), with a constant where it is 1. A device has one form of the loop for all strides: it waits for
// memory.
template <class F>
DIOPI_HD_INLINED void with_stride(int64_t stride, F&& f) {
#if !defined(__CUDACC__)
    if (stride == 1) return f(UnitStride{});
#endif
    f(stride);
}

// Calls f(strides), with constants where all are 1.
template <int N, class F>
DIOPI_HD_INLINED void with_strides(const int64_t (&strides)[N], F&& f) {
#if !defined(__CUDACC__)
    bool unit = true;
    for (int n = 0; n < N; ++n) unit = unit && strides[n] == 1;
    if (unit) return f(UnitStrides{});
#endif
    f(strides);
}

// Calls f(flag), with a constant on a host, whose loops are then free of choices.
template <class F>
void with_flag(bool flag, F&& f) {
#if defined(__CUDACC__)
    f(flag);
#else
    flag ? f(std::true_type{}) : f(std::false_type{});
#endif
}

// What a thread takes of a run: the elements first, first + step, ... below end.
struct Stripe {
    int64_t first;
    int64_t step;
    int64_t end;

    DIOPI_HD int64_t count() const { return first < end ? (end - first - 1) / step + 1 : 0; }
    // Whether it has `count` elements from k on.
    DIOPI_HD bool has(int count, int64_t k) const { return k + (count - 1) * step < end; }
};

// All of a run, with constants for the compiler.
struct WholeRun {
    static constexpr int64_t first = 0;
    static constexpr int64_t step = 1;
    int64_t end;

    DIOPI_HD int64_t count() const { return end; }
    DIOPI_HD bool has(int count, int64_t k) const { return k + count <= end; }
};

// Calls body(k) for the elements k of `mine`, which do not depend on one another.
template <class Elements, class Body>
DIOPI_HD_INLINED void each(Elements mine, Body&& body) {
    const int64_t end = mine.end;
    DIOPI_VECTOR_LOOP
    for (int64_t k = mine.first; k < end; k += mine.step) body(k);
}

// Chains that a long run of neighbours is folded in: on a host they are vectors, several of them to hide the latency of
// an addition. Others have few, since each costs a join, and scattered elements make no vectors.
#if defined(__CUDACC__)
constexpr int kLanes = 4, kFewLanes = 4;
#else
constexpr int kLanes = 32, kFewLanes = 4;
#endif

// The chains of elements that lie strides of this type apart.
template <class Strides>
constexpr int kLanesOf = kFewLanes;
template <>
inline constexpr int kLanesOf<UnitStride> = kLanes;
template <>
inline constexpr int kLanesOf<UnitStrides> = kLanes;

// Joins chains until few are left; each width is a constant, for vector code.
template <int lanes, class State, class Join>
DIOPI_HD_INLINED void join_lanes(State* states, Join&& join) {
    if constexpr (lanes > kFewLanes) {
        DIOPI_UNROLL
        for (int lane = 0; lane < lanes / 2; ++lane) states[lane] = join(states[lane], states[lane + lanes / 2]);
        join_lanes<lanes / 2>(states, join);
    }
}

// The join of step(state, k) over the elements k of `mine`, in interleaved chains, each from `start`.
template <int lanes, class Elements, class State, class Step, class Join>
DIOPI_FLATTEN DIOPI_HD inline State fold_in_lanes(Elements mine, const State& start, Step&& step, Join&& join) {
    State states[lanes];
    DIOPI_UNROLL
    for (int lane = 0; lane < lanes; ++lane) states[lane] = start;
    int64_t k = mine.first;
    for (; mine.has(lanes, k); k += lanes * mine.step) {
        DIOPI_UNROLL
        for (int lane = 0; lane < lanes; ++lane) states[lane] = step(states[lane], k + lane * mine.step);
    }
    join_lanes<lanes>(states, join);
    if constexpr (lanes > kFewLanes) {
        for (; mine.has(kFewLanes, k); k += kFewLanes * mine.step) {
            DIOPI_UNROLL
            for (int lane = 0; lane < kFewLanes; ++lane) states[lane] = step(states[lane], k + lane * mine.step);
        }
    }
    State left = start;
    if constexpr (kLanes == kFewLanes) {
        DIOPI_UNROLL
        for (int lane = 0; lane < kFewLanes - 1; ++lane, k += mine.step) {
            if (k >= mine.end) break;
            states[lane] = step(states[lane], k);
        }
    } else {  // on a host the chains are a vector, one of which would be slow to change
        for (; k < mine.end; k += mine.step) left = step(left, k);
    }
    DIOPI_UNROLL
    for (int width = kFewLanes / 2; width > 0; width /= 2) {
        DIOPI_UNROLL
        for (int lane = 0; lane < width; ++lane) states[lane] = join(states[lane], states[lane + width]);
    }
    return kLanes == kFewLanes ? states[0] : join(states[0], left);
}

// In `lanes` chains where there is enough for them, or in a quarter of them.
template <int lanes = kLanes, class Elements, class State, class Step, class Join>
DIOPI_HD inline State fold_of_run(Elements mine, const State& start, Step&& step, Join&& join) {
    if constexpr (lanes != kFewLanes) {
        if (mine.has(2 * lanes, mine.first)) return fold_in_lanes<lanes>(mine, start, step, join);
        if constexpr (lanes / 4 > kFewLanes) {
            if (mine.has(lanes / 2, mine.first)) return fold_in_lanes<lanes / 4>(mine, start, step, join);
        }
    }
    return fold_in_lanes<kFewLanes>(mine, start, step, join);
}

// Sums of halves and floats are kept in double, those of several values in what they are.
template <class Term>
using SumOf = std::conditional_t<std::is_arithmetic_v<Term>, double, Term>;

// The sum of term(k) for the elements k of `mine`.
template <int lanes = kLanes, class Elements, class Term>
DIOPI_HD inline auto sum_of_run(Elements mine, Term&& term) {
    using Sum = SumOf<std::decay_t<decltype(term(int64_t{0}))>>;
    return fold_of_run<lanes>(
        mine, Sum{}, [&](const Sum& sum, int64_t k) { return sum + term(k); },
        [](const Sum& a, const Sum& b) { return a + b; });
}

// Joins values to the largest; NaN where there is one.
struct Larger {
    template <class C>
    DIOPI_HD C operator()(C best, C next) const {
        return ((next > best) | (next != next)) ? next : best;
    }
};

// The largest value(k) for the elements k of `mine`, at least value(0); NaN where there is one.
template <class C, int lanes = kLanes, class Elements, class Value>
DIOPI_HD inline C largest_of_run(Elements mine, Value&& value) {
    const Larger larger;
    return fold_of_run<lanes>(
        mine, static_cast<C>(value(0)), [&](C best, int64_t k) { return larger(best, static_cast<C>(value(k))); },
        larger);
}

}  // namespace diopi::kernels
