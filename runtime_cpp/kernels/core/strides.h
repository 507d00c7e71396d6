// Loops over runs of elements that become vector code on a host: the usual stride as a constant, and reductions in
// lanes of their own.
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

// The sum of term(k) for k in [0, count), in eight interleaved chains: they hide the latency of an addition, and make
// each chain of roundings shorter.
template <class Term>
DIOPI_HD inline double sum_of_run(int64_t count, Term&& term) {
    constexpr int kLanes = 8;
    double lanes[kLanes] = {};
    int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(k + lane);
    }
    for (int lane = 0; k < count; ++k, ++lane) lanes[lane] += term(k);
    return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

// The largest value(k) for k in [0, count), at least one; NaN where there is one.
template <class C, class Value>
DIOPI_HD inline C largest_of_run(int64_t count, Value&& value) {
    constexpr int kLanes = 32;
    const auto larger = [](C best, C next) { return (next > best) | (next != next) ? next : best; };
    C lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = value(0);
    int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = larger(lanes[lane], value(k + lane));
    }
    for (; k < count; ++k) lanes[0] = larger(lanes[0], value(k));
    C best = lanes[0];
    for (int lane = 1; lane < kLanes; ++lane) best = larger(best, lanes[lane]);
    return best;
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_STRIDES_H_
