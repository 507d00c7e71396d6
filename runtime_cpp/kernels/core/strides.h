// Loops over runs of elements that become vector code on a host: the usual stride as a constant, and folds in chains
// of their own.
#ifndef DIOPI_KERNELS_CORE_STRIDES_H_
#define DIOPI_KERNELS_CORE_STRIDES_H_

#include <cstdint>

#include "host_device.h"

namespace diopi::kernels {

struct UnitStride {
    DIOPI_HD constexpr operator int64_t() const { return 1; }
};

struct UnitStrides {
    DIOPI_HD constexpr UnitStride operator[](int) const { return {}; }
};

// Calls f(stride), with a constant where it is 1.
template <class F>
DIOPI_HD inline void with_stride(int64_t stride, F&& f) {
    if (stride == 1) {
        f(UnitStride{});
    } else {
        f(stride);
    }
}

// Calls f(strides), with constants where all are 1.
template <int N, class F>
DIOPI_HD inline void with_strides(const int64_t (&strides)[N], F&& f) {
    bool unit = true;
    for (int n = 0; n < N; ++n) unit = unit && strides[n] == 1;
    if (unit) {
        f(UnitStrides{});
    } else {
        f(strides);
    }
}

// Chains that a long run is folded in: on a host they are vectors, several of them to hide the latency of an addition.
#if defined(__CUDACC__)
constexpr int kLanes = 4;
#else
constexpr int kLanes = 32;
#endif

// The join of step(state, k) over k in [0, count), in interleaved chains, each from `start`.
template <int lanes, class State, class Step, class Join>
DIOPI_FLATTEN DIOPI_HD inline State fold_in_lanes(int64_t count, const State& start, Step&& step, Join&& join) {
    State states[lanes];
    for (int lane = 0; lane < lanes; ++lane) states[lane] = start;
    int64_t k = 0;
    for (; k + lanes <= count; k += lanes) {
        for (int lane = 0; lane < lanes; ++lane) states[lane] = step(states[lane], k + lane);
    }
    for (int lane = 0; k < count; ++k, ++lane) states[lane] = step(states[lane], k);
    for (int width = lanes / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; ++lane) states[lane] = join(states[lane], states[lane + width]);
    }
    return states[0];
}

// A short run has few chains, since each costs a join.
template <class State, class Step, class Join>
DIOPI_HD inline State fold_of_run(int64_t count, const State& start, Step&& step, Join&& join) {
    if (kLanes == 4 || count < 2 * kLanes) return fold_in_lanes<4>(count, start, step, join);
    return fold_in_lanes<kLanes>(count, start, step, join);
}

// The sum of term(k) for k in [0, count).
template <class Term>
DIOPI_HD inline double sum_of_run(int64_t count, Term&& term) {
    return fold_of_run(
        count, 0.0, [&](double sum, int64_t k) { return sum + term(k); }, [](double a, double b) { return a + b; });
}

// The largest value(k) for k in [0, count), at least one; NaN where there is one.
template <class C, class Value>
DIOPI_HD inline C largest_of_run(int64_t count, Value&& value) {
    const auto larger = [](C best, C next) { return (next > best) | (next != next) ? next : best; };
    return fold_of_run(
        count, static_cast<C>(value(0)), [&](C best, int64_t k) { return larger(best, value(k)); }, larger);
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_STRIDES_H_
