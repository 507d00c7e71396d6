// How far an element may be from its exact value: conformance/diopi_conformance/judgement/tolerance.py has the model. Needs no torch.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace dipu {

constexpr double kRoundings = 8;  // of one term: a transcendental function may be wrong by 4 units in the last place

// What the numbers of a float, and sums in it, are good for.
struct Precision {
    int digits;  // bits of the significand, the hidden one too
    int smallest;  // exponent of the smallest step that counts
    double largest;
    double accumulation;  // unit roundoff of the type that sums are computed in
};

// Small numbers of the narrow types are common, and computed in float32: those below the normal ones count. Those of the
// wider types may be flushed.
inline Precision precision_of(int digits, int exponent) {
    using Single = std::numeric_limits<float>;
    const int normal = 2 - (1 << (exponent - 1));
    return {digits, normal > Single::min_exponent - 1 ? normal - digits + 1 : normal,
            std::ldexp(2 - std::ldexp(1.0, 1 - digits), 1 - normal),
            std::ldexp(1.0, -std::max(digits, Single::digits))};
}

inline double size_of(double value) { return std::isfinite(value) ? std::abs(value) : 0; }

inline double unit_in_last_place(double value, const Precision& type) {
    int exponent = 0;
    std::frexp(std::clamp(size_of(value), std::ldexp(1.0, type.smallest), type.largest), &exponent);
    return std::ldexp(1.0, std::max(exponent - type.digits, type.smallest));
}

// Of an element made of `terms` numbers, whose sizes come to `scale` beside its own.
inline double bound(double exact, const Precision& type, double terms, double scale) {
    return unit_in_last_place(exact, type) +
           kRoundings * std::sqrt(terms) * type.accumulation * (size_of(exact) + scale);
}

// Whether `found` is an infinity in place of a number that the type may just not hold.
inline bool overflows(double found, double exact, double bound, const Precision& type) {
    return std::isinf(found) && std::isfinite(exact) && std::abs(exact) + bound > type.largest &&
           std::signbit(found) == std::signbit(exact);
}

}  // namespace dipu
