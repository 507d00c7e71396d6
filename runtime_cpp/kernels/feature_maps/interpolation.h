// The elements of one axis that a position between them is read from, and their weights.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device_code.h"
#include "math/math.h"

namespace diopi::kernels {

enum class Interpolation { nearest, linear, cubic };

// By which loops over taps have a known length.
template <Interpolation kind>
using Known = std::integral_constant<Interpolation, kind>;

constexpr int kMostTaps = 4;

DIOPI_HD constexpr int tap_count(Interpolation kind) {
    return kind == Interpolation::nearest ? 1 : kind == Interpolation::linear ? 2 : 4;
}

// Element first + k counts weights[k] times.
struct Taps {
    int64_t first;
    int count;
    double weights[kMostTaps];
};

// Keys' cubic convolution with the parameter -0.75, "Cubic convolution interpolation for digital image processing",
// 1981; at `x` from 0 to 1 and from 1 to 2 elements away.
DIOPI_HD inline double cubic_near(double x) { return ((1.25 * x - 2.25) * x) * x + 1; }
DIOPI_HD inline double cubic_far(double x) { return ((-0.75 * x + 3.75) * x - 6) * x + 3; }

constexpr Taps kOneTap{0, 1, {1, 0, 0, 0}};  // of an axis that a tensor lacks

// Where `position` is an element's number or between two of them.
DIOPI_HD inline Taps taps_at(Interpolation kind, double position) {
    const double base = kind == Interpolation::nearest ? math::round(position) : math::floor(position);
    const auto element = static_cast<int64_t>(base);
    const double t = position - base;
    if (kind == Interpolation::nearest) return {element, 1, {1, 0, 0, 0}};
    if (kind == Interpolation::linear) return {element, 2, {1 - t, t, 0, 0}};
    return {element - 1, 4, {cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)}};
}

// f(z, y, x, weight) for each element that takes part in a position of a volume.
template <class F>
DIOPI_HD inline void for_each_tap(const Taps& depth, const Taps& rows, const Taps& columns, F&& f) {
    for (int kz = 0; kz < depth.count; ++kz) {
        DIOPI_UNROLL
        for (int ky = 0; ky < rows.count; ++ky) {
            const double height = depth.weights[kz] * rows.weights[ky];
            DIOPI_UNROLL
            for (int kx = 0; kx < columns.count; ++kx)
                f(depth.first + kz, rows.first + ky, columns.first + kx, height * columns.weights[kx]);
        }
    }
}

}  // namespace diopi::kernels
