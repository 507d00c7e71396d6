// Angles of any size as quarter turns and a rest, without branches, for the trigonometric functions of vector_math.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "core/host_device.h"

namespace diopi::math::vector_detail {

// 2^(e - 150) modulo 2 pi for each exponent e of a float: what one unit in the last place of its mantissa is. `high` has
// so few bits that its product with a mantissa is exact, `low` is what it lacks.
struct Units {
    double high[256];
    double low[256];
};

// In fixed point of 4 bits before and 252 after the point, which 104 doublings leave enough of.
constexpr Units units() {
    constexpr uint64_t turn[4] = {0x6487ed5110b4611a, 0x62633145c06e0e68, 0x948127044533e63a, 0x0105df531d89cd91};
    uint64_t value[4] = {uint64_t{4} << 60, 0, 0, 0};
    Units result{};
    double power = 1.0;
    for (int e = 0; e < 150; ++e) power *= 0.5;
    for (int e = 0; e < 255; ++e) {
        const int exponent = e == 0 ? 1 : e;  // subnormal numbers have the exponent of the smallest normal ones
        if (e > 1) power *= 2.0;
        if (e == 0) power *= 2.0;
        if (exponent < 153) {
            result.high[e] = power;
            continue;
        }
        bool carry = false;  // doubled, less a whole turn
        for (int word = 3; word >= 0; --word) {
            const bool out = value[word] >> 63 != 0;
            value[word] = value[word] << 1 | (carry ? 1 : 0);
            carry = out;
        }
        bool less = false;
        for (int word = 0; word < 4; ++word) {
            if (value[word] == turn[word]) continue;
            less = value[word] < turn[word];
            break;
        }
        bool borrow = false;
        for (int word = 3; word >= 0 && !less; --word) {
            const uint64_t before = value[word];
            value[word] = before - turn[word] - (borrow ? 1 : 0);
            borrow = before < turn[word] || (borrow && before == turn[word]);
        }
        constexpr double last = 1.0 / 33554432.0;  // 2^-25
        constexpr double below = last / 34359738368.0;
        result.high[e] = static_cast<double>(value[0] >> 35) * last;
        result.low[e] = static_cast<double>(value[0] & 0x7ffffffff) * below +
                        static_cast<double>(value[1]) * below / 18446744073709551616.0;
    }
    result.high[255] = std::numeric_limits<double>::quiet_NaN();  // infinity and NaN have no sine
    return result;
}

inline constexpr Units kUnits = units();

struct Angle {
    uint32_t quarters;  // the last two bits count
    double rest;        // in [-pi/4, pi/4]
};

inline Angle angle(float x) {
    const uint32_t bits = kernels::bits_of_float(x);
    const auto exponent = static_cast<int32_t>(bits >> 23 & 0xffu);
    const uint32_t fraction = (bits & 0x7fffffu) | (exponent == 0 ? 0u : 0x800000u);
    const double mantissa = std::copysign(static_cast<double>(static_cast<int32_t>(fraction)), static_cast<double>(x));
    constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52: a sum with it keeps the nearest integer at its end
    constexpr double quarter = 105414357.0 / 67108864.0;  // pi/2 in 27 bits, whose product with the quarters is exact
    constexpr double quarter_rest = 9.920935796805404e-10;  // pi/2 - quarter
    const double turned = mantissa * kUnits.high[exponent];
    const double lack = mantissa * kUnits.low[exponent];
    const double shifted = (turned + lack) * 0.63661977236758134 + shift;
    const double whole = shifted - shift;
    const double rest = (turned - whole * quarter) + (lack - whole * quarter_rest);
    uint64_t end;
    memcpy(&end, &shifted, sizeof(end));
    return {static_cast<uint32_t>(end), rest};
}

// The sine and the cosine of a rest; T is float or, where more digits count, double.
template <class T>
inline T small_sin(T x, T square) {
    const T series = -0.16666667f + square * (0.008333332f + square * (-0.00019840075f + square * 2.7248404e-06f));
    return std::copysign(x + x * square * series, x);  // of -0 too
}

template <class T>
inline T small_cos(T square) {
    const T series = 0.041666668f + square * (-0.0013888888f + square * (2.480059e-05f + square * -2.7299686e-07f));
    return T(1) - (T(0.5) * square - square * square * series);
}

}  // namespace diopi::math::vector_detail
