// Element types: the C++ type of a dtype, sets of dtypes, dispatch over a set, conversion and promotion.
#pragma once

#include <diopi/diopirt_ext.h>
#include <diopi/dtypes.h>

#include <type_traits>

#include "error.h"
#include "half.h"

namespace diopi::kernels {

template <class... T>
struct Types {};

template <class T>
struct Type {
    using type = T;
};

using Float = Types<DIOPI_FLOAT_TYPES>;
using Integer = Types<bool, DIOPI_INTEGER_TYPES>;
using Number = Types<DIOPI_NUMBER_TYPES>;
using Any = Types<DIOPI_ANY_TYPES>;
using Index = Types<DIOPI_INDEX_TYPES>;
// All that can be copied and cast: the other sets leave out the wide unsigned types, as torch's kernels do.
using Storable = Types<DIOPI_STORABLE_TYPES>;

template <class T>
constexpr diopiDtype_t dtype_of = diopi_dtype_unsupported;
#define DIOPI_DTYPE_OF(name, type) \
    template <>                    \
    inline constexpr diopiDtype_t dtype_of<type> = diopi_dtype_##name;
DIOPI_FOR_EACH_CPP_DTYPE(DIOPI_DTYPE_OF)
#undef DIOPI_DTYPE_OF

template <class T>
constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_float = std::is_floating_point_v<T> || is_half<T>;

// What an elementwise expression over T computes in.
template <class T>
using ComputeType = std::conditional_t<is_half<T>, float, T>;
// What a long sum over T is kept in.
template <class T>
using AccumulateType =
    std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<is_float<T>, float, int64_t>>;

namespace detail {
template <class... T, class F>
bool dispatch_over(Types<T...>, diopiDtype_t dtype, F& f) {
    return ((dtype == dtype_of<T> ? (f(Type<T>{}), true) : false) || ...);
}
template <class... T>
constexpr bool contains(Types<T...>, diopiDtype_t dtype) {
    return ((dtype == dtype_of<T>) || ...);
}
}  // namespace detail

template <class Set>
constexpr bool is_in(diopiDtype_t dtype) {
    return detail::contains(Set{}, dtype);
}

[[noreturn]] inline void fail_dtype(diopiDtype_t dtype) {
    fail(diopiDtypeNotSupported, "the kernel does not support %s", diopiDtypeName(dtype));
}

// Calls f(Type<T>{}) for the T of `dtype`; a dtype outside of the set fails with diopiDtypeNotSupported.
// e.g. dispatch<Float>(x.dtype, [&](auto type) { using T = typename decltype(type)::type; softmax_rows<T>(x); });
template <class Set, class F>
void dispatch(diopiDtype_t dtype, F&& f) {
    if (!detail::dispatch_over(Set{}, dtype, f)) fail_dtype(dtype);
}

// Calls f with the unsigned type of that many bytes.
template <class F>
auto dispatch_word(int64_t bytes, F&& f) {
    switch (bytes) {
        case 1: return f(Type<uint8_t>{});
        case 2: return f(Type<uint16_t>{});
        case 4: return f(Type<uint32_t>{});
        default: return f(Type<uint64_t>{});
    }
}

// A conversion that is defined for every pair: to bool by a test for zero, from floats to small integers by way of
// int32, as C++ compilers have it.
template <class To, class From>
DIOPI_HD inline To cast(From value) {
    if constexpr (std::is_same_v<To, From>) {
        return value;
    } else if constexpr (is_half<From>) {
        return cast<To>(static_cast<float>(value));
    } else if constexpr (is_half<To>) {
        return To(static_cast<float>(value));
    } else if constexpr (std::is_same_v<To, bool>) {
        return value != From(0);
    } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
        if constexpr (std::is_same_v<To, uint64_t>) {
            return value < From(0) ? static_cast<To>(static_cast<int64_t>(value)) : static_cast<To>(value);
        } else if constexpr (!std::is_same_v<To, uint32_t> && sizeof(To) <= sizeof(int32_t)) {
            return static_cast<To>(static_cast<int32_t>(value));
        } else {
            return static_cast<To>(static_cast<int64_t>(value));
        }
    } else {
        return static_cast<To>(value);
    }
}

constexpr bool is_float_dtype(diopiDtype_t dtype) { return is_in<Float>(dtype); }
constexpr bool is_complex_dtype(diopiDtype_t dtype) {
#define DIOPI_IS(name, parts) dtype == diopi_dtype_##name ||
    return DIOPI_FOR_EACH_COMPLEX(DIOPI_IS) false;
#undef DIOPI_IS
}

inline int64_t element_size(diopiDtype_t dtype) {
    const int64_t bytes = diopiDtypeBytes(dtype);
    if (bytes == 0) fail_dtype(dtype);
    return bytes;
}

// torch.promote_types over the set Any; integers wider than what torch promotes fail.
inline diopiDtype_t promote(diopiDtype_t a, diopiDtype_t b) {
    if (a == b) return a;
    if (a == diopi_dtype_bool) return b;
    if (b == diopi_dtype_bool) return a;
    const bool a_floats = is_float_dtype(a);
    const bool b_floats = is_float_dtype(b);
    if (a_floats && b_floats) {
        if (a == diopi_dtype_float64 || b == diopi_dtype_float64) return diopi_dtype_float64;
        return diopi_dtype_float32;  // float16 with bfloat16 needs the range of one and the fraction of the other
    }
    if (a_floats || b_floats) return a_floats ? a : b;
    if (!is_in<Integer>(a)) fail_dtype(a);
    if (!is_in<Integer>(b)) fail_dtype(b);
    const int64_t a_size = element_size(a), b_size = element_size(b);
    if (a_size == b_size) return diopi_dtype_int16;  // int8 with uint8: the only two integers of one size
    return a_size > b_size ? a : b;
}

}  // namespace diopi::kernels
