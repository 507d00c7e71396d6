// Angles of any size as quarter turns and a rest, without branches and tables, for the trigonometric functions of
// vector_math.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/half.h"

namespace diopi::math {

// A number for which the usual form of a function will do, which has the same bits and takes less time.
struct Usual {
    float value;
    operator float() const { return value; }
};

constexpr float kNear = 6400.0f;  // usual angles are smaller

namespace vector_detail {

// a * b + c, rounded once on processors that do so as fast as a product.
inline float fused(float a, float b, float c) {
#if defined(FP_FAST_FMAF) || defined(__FMA__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

// The coefficient of 1 comes first.
inline float polynomial(float, float last) { return last; }
template <class... More>
inline float polynomial(float x, float first, More... more) {
    return fused(polynomial(x, more...), x, first);
}

struct Angle {
    uint32_t quarters;  // the last two bits count
    float rest;         // in [-pi/4, pi/4]
};

// Cody and Waite: pi/2 in four parts, of which three have 12 bits, so that their products with the quarters are exact. The
// first two differences are, too, and what the third one loses is added.
inline Angle angle(Usual x) {
    constexpr float shift = 12582912.0f;  // 1.5 * 2^23: a sum with it keeps the nearest integer in its last bits
    const float shifted = fused(x.value, 0.636619772f, shift);
    const float whole = shifted - shift;
    const float exact = fused(whole, -0x1.fb4p-12f, fused(whole, -0x1.92p+0f, x.value));
    const float third = whole * 0x1.444p-24f;
    const float most = exact - third;
    const float lost = (exact - most) - third;
    return {kernels::bits_of_float(shifted), most - fused(whole, 0x1.68c234p-39f, -lost)};  // -0 for -0
}

// 1/(2 pi) as a sum of parts. The product of one of 29 bits with a float is exact in double.
constexpr double kTurnParts[] = {0x1.45f306cp-3, 0x1.c9c882ap-31, 0x1.4fe13a8p-61, 0x1.f47d4d3p-88, 0x1.dc0db62p-118};
constexpr double kAfterThree = 0x1.f47d4d377036ep-88;  // the sum of all after the third one
constexpr double kAfterFive = 0x1.2b32788720840p-147;

// Any angle, one below 2^-149 apart: the products are turns, of which whole ones do not count. Those of the first two parts
// with a float above 2^82 are whole; four other parts have all digits that count then.
inline Angle wide_angle(float x) {
    const double value = x;
    const bool huge = std::fabs(value) >= 0x1p82;
    const double first = value * (huge ? kTurnParts[2] : kTurnParts[0]);
    const double second = value * (huge ? kTurnParts[3] : kTurnParts[1]);
    const double third = value * (huge ? kTurnParts[4] : kTurnParts[2]);
    const double last = value * (huge ? kAfterFive : kAfterThree);
    const double turns =
        (((first - std::nearbyint(first)) + (second - std::nearbyint(second))) + (third - std::nearbyint(third))) +
        last;
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
    const double quarters = turns * 4.0;
    const double shifted = quarters + shift;
    const double rest = (quarters - (shifted - shift)) * 1.5707963267948966;
    return {static_cast<uint32_t>(kernels::bits_as<uint64_t>(shifted)), static_cast<float>(rest)};
}

inline Angle angle(float x) {
    const Angle near = angle(Usual{x}), wide = wide_angle(x);
    const bool is_near = std::fabs(x) < kNear;
    return {is_near ? near.quarters : wide.quarters, is_near ? near.rest : wide.rest};
}

inline float small_sin(float x, float square) {
    const float series = polynomial(square, -0.16666667f, 0.008333332f, -0.00019840075f, 2.7248404e-06f);
    return std::copysign(fused(x * square, series, x), x);  // of -0 too
}

inline float small_cos(float square) {
    const float series = polynomial(square, 0.041666668f, -0.0013888888f, 2.480059e-05f, -2.7299686e-07f);
    return 1.0f - fused(square * square, -series, 0.5f * square);
}

}  // namespace vector_detail
}  // namespace diopi::math
