// diopi::math: the functions of kernel expressions, for every compute type, on the host and on the device.
//
// Integers: floor, ceil, round and trunc are the identity; a division or remainder by zero gives 0 instead of a trap,
// and the smallest value divided by -1 wraps; pow is exact modulo the width, a negative exponent gives 0 unless the
// base is 1 or -1. Functions that only floats have (exp, sin, ...) are called with float and double.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "core/dtype.h"
#if !defined(__CUDACC__)
#include "vector_math.h"  // overloads for float
#endif

namespace diopi::math {

// Constants, so that device code calls no host function.
template <class C>
constexpr C infinity = std::numeric_limits<C>::infinity();
template <class C>
constexpr C quiet_nan = std::numeric_limits<C>::quiet_NaN();

// clang-format off
template <class C> constexpr bool kFloats = std::is_floating_point_v<C>;
template <class C> constexpr bool kSigned = std::is_signed_v<C>;
// clang-format on

// Bases of expressions that are one function of arguments themselves: for which of them, in float on a host, the function
// of Usual numbers gives what it gives for any.
struct UsualAngle {
#if !defined(__CUDACC__)
    static bool usual(float x) { return std::fabs(x) < kNear; }
#endif
};
struct UsualQuotient {
#if !defined(__CUDACC__)
    static bool usual(float a, float b) { return (std::fabs(a) < 0x1p28f * std::fabs(b)) | (b == 0.0f); }
#endif
};

// clang-format off
template <class C> DIOPI_HD inline C exp(C x) { return std::exp(x); }
template <class C> DIOPI_HD inline C exp2(C x) { return std::exp2(x); }
template <class C> DIOPI_HD inline C expm1(C x) { return std::expm1(x); }
template <class C> DIOPI_HD inline C log(C x) { return std::log(x); }
template <class C> DIOPI_HD inline C log1p(C x) { return std::log1p(x); }
template <class C> DIOPI_HD inline C log2(C x) { return std::log2(x); }
template <class C> DIOPI_HD inline C log10(C x) { return std::log10(x); }
template <class C> DIOPI_HD inline C sqrt(C x) { return std::sqrt(x); }
template <class C> DIOPI_HD inline C rsqrt(C x) { return C(1) / std::sqrt(x); }
template <class C> DIOPI_HD inline C sin(C x) { return std::sin(x); }
template <class C> DIOPI_HD inline C cos(C x) { return std::cos(x); }
template <class C> DIOPI_HD inline C tan(C x) { return std::tan(x); }
template <class C> DIOPI_HD inline C asin(C x) { return std::asin(x); }
template <class C> DIOPI_HD inline C acos(C x) { return std::acos(x); }
template <class C> DIOPI_HD inline C atan(C x) { return std::atan(x); }
template <class C> DIOPI_HD inline C atan2(C y, C x) { return std::atan2(y, x); }
template <class C> DIOPI_HD inline C tanh(C x) { return std::tanh(x); }
template <class C> DIOPI_HD inline C erf(C x) { return std::erf(x); }
template <class C> DIOPI_HD inline C sinh(C x) { return std::sinh(x); }
template <class C> DIOPI_HD inline C cosh(C x) { return std::cosh(x); }
template <class C> DIOPI_HD inline C asinh(C x) { return std::asinh(x); }
template <class C> DIOPI_HD inline C acosh(C x) { return std::acosh(x); }
template <class C> DIOPI_HD inline C atanh(C x) { return std::atanh(x); }
template <class C> DIOPI_HD inline C erfc(C x) { return std::erfc(x); }

// Integers are whole, and numbers.
template <class C> DIOPI_HD inline bool isnan(C x) { if constexpr (kFloats<C>) return x != x; else return false; }
template <class C> DIOPI_HD inline bool isneginf(C x) { if constexpr (kFloats<C>) return x == -infinity<C>; else return false; }
template <class C> DIOPI_HD inline bool isposinf(C x) { if constexpr (kFloats<C>) return x == infinity<C>; else return false; }
template <class C> DIOPI_HD inline bool isinf(C x) { return int{isposinf(x)} | isneginf(x); }
template <class C> DIOPI_HD inline bool isfinite(C x) { return !(int{isnan(x)} | isinf(x)); }
template <class C> DIOPI_HD inline C floor(C x) { if constexpr (kFloats<C>) return std::floor(x); else return x; }
template <class C> DIOPI_HD inline C ceil(C x) { if constexpr (kFloats<C>) return std::ceil(x); else return x; }
template <class C> DIOPI_HD inline C round(C x) { if constexpr (kFloats<C>) return std::nearbyint(x); else return x; }  // to even
template <class C> DIOPI_HD inline C trunc(C x) { if constexpr (kFloats<C>) return std::trunc(x); else return x; }
// clang-format on

// Small integers become int in an expression, so the two sides may differ in type: the wider one is the result.
template <class A, class B>
DIOPI_HD inline std::common_type_t<A, B> where(bool condition, A a, B b) {
    return condition ? a : b;
}

template <class C>
DIOPI_HD inline C abs(C x) {
    if constexpr (std::is_floating_point_v<C>) {
        return std::fabs(x);
    } else if constexpr (std::is_unsigned_v<C>) {
        return x;
    } else {
        return x < C(0) ? static_cast<C>(C(0) - x) : x;
    }
}

// Zero for NaN, as in torch.
template <class C>
DIOPI_HD inline C sign(C x) {
    if constexpr (std::is_unsigned_v<C>) {
        return x != C(0);
    } else {
        return static_cast<C>((C(0) < x) - (x < C(0)));
    }
}

// A NaN on either side is the result. One instruction of vector code where `b` is the same in a whole loop.
template <class A, class B>
DIOPI_HD inline std::common_type_t<A, B> min(A a, B b) {
    const std::common_type_t<A, B> smaller = b < a ? b : a;
    return isnan(b) ? b : smaller;
}

template <class A, class B>
DIOPI_HD inline std::common_type_t<A, B> max(A a, B b) {
    const std::common_type_t<A, B> larger = b > a ? b : a;
    return isnan(b) ? b : larger;
}

namespace detail {

// clang-format off
template <class C> DIOPI_HD inline bool negative(C x) { if constexpr (kSigned<C>) return x < C(0); else return false; }
// The one divisor besides zero that can trap.
template <class C> DIOPI_HD inline bool minus_one(C x) { if constexpr (kSigned<C>) return x == C(-1); else return false; }
// clang-format on

// Division that cannot trap: zero divisors and the overflow of the smallest value are settled first.
template <class C>
DIOPI_HD inline C quotient(C a, C b) {
    if (b == C(0)) return C(0);
    if constexpr (std::is_signed_v<C>) {
        if (b == C(-1))
            return static_cast<C>(typename std::make_unsigned<C>::type(0) -
                                  static_cast<typename std::make_unsigned<C>::type>(a));
    }
    return static_cast<C>(a / b);
}

// A remainder with the sign of the dividend as the one with the sign of the divisor.
template <class C>
DIOPI_HD inline C with_sign_of(C divisor, C rest) {
    return ((rest != C(0)) & ((divisor < C(0)) != (rest < C(0)))) ? rest + divisor : rest;
}

// a / b rounded down; `rest` is fmod(a, b).
template <class C>
DIOPI_HD inline C floored_quotient(C a, C b, C rest) {
    const C exact = (a - rest) / b;
    const C below = ((rest != C(0)) & ((b < C(0)) != (rest < C(0)))) ? exact - C(1) : exact;
    const C floored = std::floor(below);
    const C nearest = below - floored > C(0.5) ? floored + C(1) : floored;
    return below == C(0) ? std::copysign(C(0), a / b) : nearest;
}

template <class C>
DIOPI_HD inline C integer_power(C base, C exponent) {
    if constexpr (std::is_same_v<C, bool>) {
        return base || !exponent;
    } else {
        if constexpr (std::is_signed_v<C>) {
            if (exponent < C(0)) {
                if (base == C(1)) return C(1);
                if (base == C(-1)) return exponent % 2 == 0 ? C(1) : C(-1);
                return C(0);
            }
        }
        uint64_t result = 1;  // unsigned: the product wraps
        uint64_t factor = static_cast<uint64_t>(base);
        for (uint64_t rest = static_cast<uint64_t>(exponent); rest != 0; rest >>= 1) {
            if ((rest & 1) != 0) result *= factor;
            factor *= factor;
        }
        return static_cast<C>(result);
    }
}

}  // namespace detail

// a / b; of integers the quotient towards zero, and 0 where b is 0, for a kernel must not trap.
// clang-format off
template <class C> DIOPI_HD inline C divide(C a, C b) { if constexpr (kFloats<C>) return a / b; else return detail::quotient(a, b); }
// clang-format on

template <class C>
DIOPI_HD inline C pow(C base, C exponent) {
    if constexpr (std::is_floating_point_v<C>) {
        // the exponents that training uses most are exact and cheap
        if (exponent == C(2)) return base * base;
        if (exponent == C(1)) return base;
        return std::pow(base, exponent);
    } else {
        return detail::integer_power(base, exponent);
    }
}

// The remainder has the sign of the dividend.
template <class C>
DIOPI_HD inline C fmod(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
        return std::fmod(a, b);
    } else if constexpr (std::is_same_v<C, bool>) {
        return false;
    } else {
        return b == C(0) || detail::minus_one(b) ? C(0) : static_cast<C>(a % b);
    }
}

// Rounds towards zero.
template <class C>
DIOPI_HD inline C trunc_div(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
        return std::trunc(a / b);
    } else if constexpr (std::is_same_v<C, bool>) {
        return a && b;
    } else {
        return detail::quotient(a, b);
    }
}

// Rounds down. For floats by way of the remainder, so that 1.0 // 0.1 is 9 as in Python.
template <class C>
DIOPI_HD inline C floor_div(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
        if (b == C(0)) return a / b;
        return detail::floored_quotient(a, b, fmod(a, b));
    } else if constexpr (std::is_same_v<C, bool>) {
        return a && b;
    } else {
        const C result = detail::quotient(a, b);
        if (b == C(0)) return result;
        const bool inexact = !detail::minus_one(b) && a % b != 0;
        return inexact && detail::negative(a) != detail::negative(b) ? static_cast<C>(result - 1) : result;
    }
}

// The remainder has the sign of the divisor.
template <class C>
DIOPI_HD inline C remainder(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
        return detail::with_sign_of(b, fmod(a, b));
    } else if constexpr (std::is_same_v<C, bool>) {
        return false;
    } else {
        if (b == C(0) || detail::minus_one(b)) return C(0);
        const C rest = static_cast<C>(a % b);
        return rest != C(0) && detail::negative(b) != detail::negative(rest) ? static_cast<C>(rest + b) : rest;
    }
}

#if !defined(__CUDACC__)
inline Usual remainder(Usual a, Usual b) { return {detail::with_sign_of<float>(b, short_fmod(a, b))}; }

inline Usual floor_div(Usual a, Usual b) {
    const float quotient = detail::floored_quotient<float>(a, b, short_fmod(a, b));
    return {b == 0.0f ? a / b : quotient};
}
#endif

// exp of a negative number only, so that nothing overflows.
template <class C>
DIOPI_HD inline C sigmoid(C x) {
    const C small = exp(-abs(x));
    return (x < C(0) ? small : C(1)) / (C(1) + small);
}

// Giles' rational start ("Approximating the erfinv function", 2012) and Halley steps in the type's own precision.
template <class C>
DIOPI_HD inline C erfinv(C y) {
#if defined(__CUDA_ARCH__)
    return ::erfinv(y);
#else
    if (isnan(y) || y < C(-1) || y > C(1)) return quiet_nan<C>;
    if (y == C(1) || y == C(-1)) return y * infinity<C>;
    C w = -std::log((C(1) - y) * (C(1) + y));
    constexpr double middle[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                 -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    constexpr double ends[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                               -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
    const bool is_middle = w < C(5);
    w = is_middle ? w - C(2.5) : std::sqrt(w) - C(3);
    C x = 0;
    for (int k = 0; k < 9; ++k) x = C((is_middle ? middle : ends)[k]) + x * w;
    x *= y;
    constexpr double two_over_root_pi = 1.1283791670955126;
    constexpr int steps = sizeof(C) == sizeof(double) ? 5 : 2;  // the start has 7 digits, fewer beyond 1 - 1e-7
    for (int step = 0; step < steps; ++step) {
        // near the ends the difference is taken from erfc, where erf has no digits left
        const C error = y > C(0.5)    ? (C(1) - y) - std::erfc(x)
                        : y < C(-0.5) ? std::erfc(-x) - (C(1) + y)
                                      : std::erf(x) - y;
        const C newton = error / (C(two_over_root_pi) * std::exp(-x * x));
        x -= newton / (C(1) + x * newton);
    }
    return x;
#endif
}

// clang-format off
// torch.clamp: a NaN among the bounds is the result, and the upper bound wins over the lower one.
template <class C> DIOPI_HD inline C clamp(C x, C low, C high) { return min(max(x, low), high); }
template <class C> DIOPI_HD inline C softplus(C x) { return max(x, C(0)) + log1p(exp(-abs(x))); }
template <class C> DIOPI_HD inline C square(C x) { return static_cast<C>(x * x); }
template <class C> DIOPI_HD inline bool logical_and(C a, C b) { return a != C(0) && b != C(0); }
template <class C> DIOPI_HD inline bool logical_or(C a, C b) { return a != C(0) || b != C(0); }
template <class C> DIOPI_HD inline bool logical_xor(C a, C b) { return (a != C(0)) != (b != C(0)); }
template <class C> DIOPI_HD inline bool logical_not(C a) { return a == C(0); }
template <class C> DIOPI_HD inline C bitwise_and(C a, C b) { return static_cast<C>(a & b); }
template <class C> DIOPI_HD inline C bitwise_or(C a, C b) { return static_cast<C>(a | b); }
template <class C> DIOPI_HD inline C bitwise_xor(C a, C b) { return static_cast<C>(a ^ b); }
template <class C> DIOPI_HD inline C bitwise_not(C a) { return static_cast<C>(~a); }
template <> DIOPI_HD inline bool bitwise_not(bool a) { return !a; }
// clang-format on

}  // namespace diopi::math
