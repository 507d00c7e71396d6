// The functions of math.h for float on a host, without branches, calls and tables, so that a loop over one of them
// becomes vector code.
//
// Each is within 3 ulp of the exact value for every float, subnormal ones included; infinities, NaN and zeros give what
// the C library gives. The coefficients are fits of our own at Chebyshev points, rounded to float.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "angles.h"
#include "core/half.h"

namespace diopi::math {
namespace vector_detail {

using kernels::bits_of_float;
using kernels::float_from_bits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kPi = 3.14159274f;
constexpr float kPiRest = -8.74227766e-8f;  // pi - kPi
constexpr float kLog2 = 0.693145752f;  // 15 bits: its product with an exponent is exact
constexpr float kLog2Rest = 1.42860677e-6f;  // ln 2 - kLog2

// NaN stays NaN.
inline float limited(float x, float low, float high) { return x > high ? high : x < low ? low : x; }

constexpr int32_t kBias = 127;
inline float of_exponent(int32_t biased) { return float_from_bits(static_cast<uint32_t>(biased) << 23); }
inline float power_of_two(int32_t n) { return of_exponent(n + kBias); }  // for n in [-126, 127]

// e^x = 2^power (1 + excess)
struct Exponential {
    int32_t power;
    float excess;
};

inline Exponential exponential(float x) {
    constexpr float shift = 12582912.0f;  // 1.5 * 2^23: a sum with it keeps the nearest integer in its last bits
    const float shifted = fused(x, 1.44269504f, shift);
    const float whole = shifted - shift;
    const float rest = fused(whole, -kLog2Rest, fused(whole, -kLog2, x));
    const float series = polynomial(rest, 0.5f, 0.16666576f, 0.041666552f, 0.008363293f, 0.0013926326f);
    return {static_cast<int32_t>(bits_of_float(shifted) - bits_of_float(shift)), fused(rest * rest, series, rest)};
}

// In two factors, so that the result may be subnormal or infinite.
inline float scaled(const Exponential& value, int32_t power) {
    const int32_t exponents = power + 2 * kBias, half = exponents >> 1;
    const float factor = of_exponent(half);
    return fused(factor, value.excess, factor) * of_exponent(exponents - half);
}

// e^x - 1 for a power in [-125, 128]
inline float minus_one(const Exponential& value) {
    const float half = power_of_two(value.power - 1);
    return 2.0f * fused(half, value.excess, half - 0.5f);
}

// ln x = power ln 2 + rest; at first `rest` is x / 2^power - 1, from sqrt(0.5) - 1 to sqrt(2) - 1.
struct Logarithm {
    float power;
    float rest;
};

// Of a positive x.
inline Logarithm fraction(float x) {
    constexpr uint32_t root = 0x3f3504f3u;  // sqrt(0.5)
    const bool subnormal = x < std::numeric_limits<float>::min();
    const uint32_t bits = bits_of_float(subnormal ? x * 8388608.0f : x) - root;
    const float power = static_cast<float>(static_cast<int32_t>(bits) >> 23);
    return {subnormal ? power - 23.0f : power, float_from_bits((bits & 0x7fffffu) + root) - 1.0f};
}

inline Logarithm logarithm(const Logarithm& fraction) {
    const float f = fraction.rest;
    const float series = polynomial(f, -0.5f, 0.3333333f, -0.24999997f, 0.20000716f, -0.16667803f, 0.14249058f,
                                    -0.12425687f, 0.1168542f, -0.11479734f, 0.06971612f);
    return {fraction.power, fused(f * f, series, f)};
}

inline Logarithm logarithm(float x) { return logarithm(fraction(x)); }

// `value`, which is right for positive finite x, or the logarithm of another x.
inline float logarithm_or_limit(float x, float value) {
    const float otherwise = x == 0.0f ? -kInfinity : kNan;
    return x > 0.0f ? (x < kInfinity ? value : x) : otherwise;
}

inline float natural(const Logarithm& value) {
    return fused(value.power, kLog2, fused(value.power, kLog2Rest, value.rest));
}

// asin(root) where root^2 = square, at most 0.25
inline float small_asin(float root, float square) {
    const float series =
        polynomial(square, 0.16666666f, 0.07500094f, 0.044599403f, 0.031100662f, 0.017149238f, 0.033690847f);
    return fused(root * square, series, root);
}

}  // namespace vector_detail

inline float exp(float x) {
    const auto value = vector_detail::exponential(vector_detail::limited(x, -104.0f, 89.0f));
    return vector_detail::scaled(value, value.power);
}

inline float expm1(float x) {
    const auto value = vector_detail::exponential(vector_detail::limited(x, -18.0f, 89.0f));
    return std::fabs(x) < 1e-10f ? x : vector_detail::minus_one(value);  // halves of subnormal values are no floats
}

inline float log(float x) {
    return vector_detail::logarithm_or_limit(x, vector_detail::natural(vector_detail::logarithm(x)));
}

inline float log2(float x) {
    const auto value = vector_detail::logarithm(x);
    return vector_detail::logarithm_or_limit(x, vector_detail::fused(value.rest, 1.44269504f, value.power));
}

inline float log10(float x) {
    const auto value = vector_detail::logarithm(x);
    constexpr float high = 0.301025391f;  // log10(2) in 13 bits
    constexpr float low = 4.60503907e-6f;  // what it lacks
    using vector_detail::fused;
    return vector_detail::logarithm_or_limit(
        x, fused(value.power, high, fused(value.rest, 0.434294482f, value.power * low)));
}

inline float log1p(float x) {
    const float sum = 1.0f + x;
    const float lost = x > 1.0f ? 1.0f - (sum - x) : x - (sum - 1.0f);
    auto fraction = vector_detail::fraction(sum);
    const float unit = vector_detail::power_of_two(-static_cast<int32_t>(fraction.power));
    fraction.rest += fraction.power > 24.0f ? 0.0f : lost * unit;
    const float value = vector_detail::natural(vector_detail::logarithm(fraction));
    return x == 0.0f ? x : vector_detail::logarithm_or_limit(sum, value);
}

inline float tanh(float x) {
    const float size = std::fabs(x);
    const float twice = 2.0f * (size > 10.0f ? 10.0f : size);
    const float above = vector_detail::minus_one(vector_detail::exponential(twice));
    return std::copysign(above / (above + 2.0f), x);
}

inline float sinh(float x) {
    const float size = std::fabs(x);
    const auto value = vector_detail::exponential(size > 91.0f ? 91.0f : size);
    const float above = vector_detail::minus_one(value);
    const float half = vector_detail::scaled(value, value.power - 1);
    const float result = size < 1.0f ? 0.5f * (above + above / (above + 1.0f)) : half - 0.25f / half;
    return std::copysign(result, x);
}

inline float cosh(float x) {
    const float size = std::fabs(x);
    const auto value = vector_detail::exponential(size > 91.0f ? 91.0f : size);
    const float half = vector_detail::scaled(value, value.power - 1);
    return half + 0.25f / half;
}

inline float asinh(float x) {
    const float size = std::fabs(x);
    const bool large = size > 1e9f;
    const float square = size * size;
    const float beyond = large ? size : size + square / (1.0f + std::sqrt(square + 1.0f));
    return std::copysign(log1p(beyond) + (large ? 0.693147182f : 0.0f), x);
}

inline float acosh(float x) {
    const bool large = x > 1e9f;
    const float above = x - 1.0f;
    const float value = log1p(large ? x : above + std::sqrt(above * (above + 2.0f))) + (large ? 0.693147182f : 0.0f);
    return x < 1.0f ? vector_detail::kNan : value;
}

inline float atanh(float x) {
    const float size = std::fabs(x);
    return std::copysign(0.5f * log1p(2.0f * size / (1.0f - size)), x);
}

inline float asin(float x) {
    const float size = std::fabs(x);
    const bool large = size > 0.5f;
    const float square = large ? (1.0f - size) * 0.5f : size * size;
    const float part = vector_detail::small_asin(large ? std::sqrt(square) : size, square);
    const float rest = 2.0f * part - 0.5f * vector_detail::kPiRest;
    return std::copysign(large ? 0.5f * vector_detail::kPi - rest : part, x);
}

inline float acos(float x) {
    const float size = std::fabs(x);
    const bool large = size > 0.5f;
    const float square = large ? (1.0f - size) * 0.5f : size * size;
    const float part = vector_detail::small_asin(large ? std::sqrt(square) : size, square);
    const float outer = x > 0.0f ? 2.0f * part : vector_detail::kPi - (2.0f * part - vector_detail::kPiRest);
    const float inner = 0.5f * vector_detail::kPi - (std::copysign(part, x) - 0.5f * vector_detail::kPiRest);
    return large ? outer : inner;
}

inline float atan(float x) {
    const float size = std::fabs(x);
    const bool large = size > 2.41421356f;  // tan(3 pi / 8)
    const bool middle = size > 0.414213562f;
    const float above = large ? -1.0f : middle ? size - 1.0f : size;
    const float ratio = above / (large ? size : middle ? size + 1.0f : 1.0f);
    const float quarters = large ? 0.5f : middle ? 0.25f : 0.0f;
    const float square = ratio * ratio;
    const float series =
        vector_detail::polynomial(square, -0.3333333f, 0.1999954f, -0.14263956f, 0.10743731f, -0.06451928f);
    const float part = ratio + vector_detail::fused(ratio * square, series, quarters * vector_detail::kPiRest);
    return std::copysign(vector_detail::fused(quarters, vector_detail::kPi, part), x);
}

// A quarter turn later a sine is a cosine, and half a turn later it has the other sign.
inline float sine_after(const vector_detail::Angle& angle, uint32_t quarters) {
    const float square = angle.rest * angle.rest;
    const uint32_t turned = angle.quarters + quarters;
    const float cosine = vector_detail::small_cos(square);
    const float sine = vector_detail::small_sin(angle.rest, square);
    return kernels::float_from_bits(kernels::bits_of_float((turned & 1u) != 0 ? cosine : sine) ^ (turned & 2u) << 30);
}

inline float tangent(const vector_detail::Angle& angle) {
    const float square = angle.rest * angle.rest;
    const float series = vector_detail::polynomial(square, 0.33333334f, 0.13333224f, 0.053996097f, 0.021608336f,
                                                   0.0100067835f, 0.0011143662f, 0.003885035f);
    const float small =
        std::copysign(vector_detail::fused(angle.rest * square, series, angle.rest), angle.rest);  // of -0 too
    return (angle.quarters & 1u) != 0 ? -1.0f / small : small;
}

inline float sin(float x) { return sine_after(vector_detail::angle(x), 0); }
inline float cos(float x) { return sine_after(vector_detail::angle(x), 1); }
inline float tan(float x) { return tangent(vector_detail::angle(x)); }

inline Usual sin(Usual x) { return {sine_after(vector_detail::angle(x), 0)}; }
inline Usual cos(Usual x) { return {sine_after(vector_detail::angle(x), 1)}; }
inline Usual tan(Usual x) { return {tangent(vector_detail::angle(x))}; }

// Exact for a quotient of up to 29 bits: with the 24 of y it fits a double.
inline float short_fmod(float x, float y) {
    const double quotient = std::trunc(static_cast<double>(x) / y);
    // off by one divisor where the division was rounded up
    const double rest = quotient == 0.0 ? x : x - quotient * y;
    const double size = std::fabs(static_cast<double>(y));
    const double whole = x < 0.0f ? (rest > 0.0 ? rest - size : rest) : (rest < 0.0 ? rest + size : rest);
    return std::copysign(static_cast<float>(whole), x);
}

inline float fmod(float x, float y) {
    return std::fabs(static_cast<double>(x) / y) < 536870912.0 ? short_fmod(x, y) : std::fmod(x, y);
}

// A series up to 1; from there 1 - e^-p, p a fit of -ln(erfc(x)) up to 3.95, beyond which the result is 1.
inline float erf(float x) {
    const float size = vector_detail::limited(std::fabs(x), 0.0f, 3.95f);
    const float square = size * size;
    const float series = vector_detail::polynomial(square, 0.12837917f, -0.37612626f, 0.11283594f, -0.026854211f,
                                                   0.0051890872f, -0.00080168643f, 7.875875e-05f);
    const float p = vector_detail::polynomial(size, -0.00032935708f, 1.130272f, 0.63175756f, 0.11014718f, -0.026460879f,
                                              0.004774191f, -0.0006000555f, 4.6459925e-05f, -1.6583206e-06f);
    const float tail = -vector_detail::minus_one(vector_detail::exponential(-p));
    return std::copysign(size < 1.0f ? vector_detail::fused(size, series, size) : tail, x);
}

// The quotient of the result and x as a polynomial of -ln(1 - x^2), and of its root where it is large (Giles,
// "Approximating the erfinv function", 2012).
inline float erfinv(float x) {
    const float size = std::fabs(x);
    const auto of_product = vector_detail::logarithm((1.0f - size) * (1.0f + size));
    const float w = -vector_detail::natural(of_product);
    const float middle = vector_detail::polynomial(w - 2.5f, 1.50140941f, 0.24664028f, -0.00417738827f, -0.00125272525f,
                                                   0.000218345886f, -4.97306974e-06f, -3.46309298e-06f, 4.68266961e-07f,
                                                   2.32647999e-08f, -8.94141294e-09f);
    const float outer = vector_detail::polynomial(std::sqrt(w) - 3.0f, 2.83297682f, 1.00167489f, 0.0094453292f,
                                                  -0.00763680413f, 0.00568672456f, -0.003599182f, 0.00148567138f,
                                                  -5.45724397e-05f, -0.000310082076f, 0.000114972572f);
    const float inside = (w < 5.0f ? middle : outer) * x;
    const float otherwise = size == 1.0f ? std::copysign(vector_detail::kInfinity, x) : vector_detail::kNan;
    return size < 1.0f ? inside : otherwise;
}

}  // namespace diopi::math
