// How a compiled program spells the arguments of library functions and the operands of its kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/launcher.h"
#include "program_abi.h"

namespace diopi::compiled {

// The address that kernels use for what lies `bytes` behind the start of a root.
inline void* address(const Run* run, int32_t root, int64_t bytes) {
    char* const start = run->roots[root];
    return start == nullptr ? nullptr : launch::device_address(start + bytes);
}

// What the sizes of a program are computed with, under the names that torch's printer of expressions gives them.
inline int64_t div_floor_integer(int64_t a, int64_t b) {
    const int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
inline int64_t div_mod(int64_t a, int64_t b) { return a - div_floor_integer(a, b) * b; }
inline double div_floor_floating(double a, double b) { return std::floor(a / b); }

// Fractions lie in the table of numbers by their bits.
inline int64_t bits(double value) {
    int64_t result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}
inline double Float32(double value) { return static_cast<float>(value); }
inline double fraction(int64_t value) {
    double result;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

template <class T>
inline diopiScalar_t scalar(T value) {
    diopiScalar_t result{};
    if constexpr (std::is_floating_point_v<T>) {
        result.stype = diopi_dtype_float64;
        result.fval = value;
    } else {
        result.stype = std::is_same_v<T, bool> ? diopi_dtype_bool : diopi_dtype_int64;
        result.ival = static_cast<int64_t>(value);
    }
    return result;
}

}  // namespace diopi::compiled
