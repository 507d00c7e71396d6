// The element types of temporaries that follow from those of the caller's tensors.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::composite {

constexpr bool is_complex(diopiDtype_t dtype) {
    return dtype == diopi_dtype_complex32 || dtype == diopi_dtype_complex64 || dtype == diopi_dtype_complex128;
}
constexpr bool is_float(diopiDtype_t dtype) {
    return dtype == diopi_dtype_float16 || dtype == diopi_dtype_bfloat16 || dtype == diopi_dtype_float32 ||
           dtype == diopi_dtype_tfloat32 || dtype == diopi_dtype_float64;
}
constexpr bool is_whole(diopiDtype_t dtype) { return !is_float(dtype) && !is_complex(dtype); }
constexpr bool is_unsigned(diopiDtype_t dtype) {
    return dtype == diopi_dtype_uint8 || dtype == diopi_dtype_uint16 || dtype == diopi_dtype_uint32 ||
           dtype == diopi_dtype_uint64;
}

// In bits; a bool has none.
constexpr int width(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8:
        case diopi_dtype_uint8: return 8;
        case diopi_dtype_int16:
        case diopi_dtype_uint16:
        case diopi_dtype_float16:
        case diopi_dtype_bfloat16: return 16;
        case diopi_dtype_int32:
        case diopi_dtype_uint32:
        case diopi_dtype_tfloat32:
        case diopi_dtype_float32:
        case diopi_dtype_complex32: return 32;
        case diopi_dtype_int64:
        case diopi_dtype_uint64:
        case diopi_dtype_float64:
        case diopi_dtype_complex64: return 64;
        case diopi_dtype_complex128: return 128;
        default: return 0;
    }
}

// The type whose parts are of `dtype`, and the type of the parts.
constexpr diopiDtype_t complex_of(diopiDtype_t dtype) {
    if (dtype == diopi_dtype_float64) return diopi_dtype_complex128;
    return dtype == diopi_dtype_float16 ? diopi_dtype_complex32 : diopi_dtype_complex64;
}
constexpr diopiDtype_t real_of(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_complex32: return diopi_dtype_float16;
        case diopi_dtype_complex64: return diopi_dtype_float32;
        case diopi_dtype_complex128: return diopi_dtype_float64;
        default: return dtype;
    }
}

// The type itself if it is a float, else float32.
constexpr diopiDtype_t floating(diopiDtype_t dtype) { return is_whole(dtype) ? diopi_dtype_float32 : dtype; }
// What sums are kept in.
constexpr diopiDtype_t accumulated(diopiDtype_t dtype) { return is_whole(dtype) ? diopi_dtype_int64 : dtype; }

// PyTorch's common type of two tensors.
constexpr diopiDtype_t promote(diopiDtype_t a, diopiDtype_t b) {
    if (a == b) return a;
    if (is_complex(a) || is_complex(b)) {
        const diopiDtype_t parts = promote(real_of(a), real_of(b));
        return complex_of(is_float(parts) ? parts : real_of(is_complex(a) ? a : b));
    }
    if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
    if (is_float(a)) return width(a) == width(b) ? diopi_dtype_float32 : width(a) > width(b) ? a : b;
    if (is_unsigned(a) == is_unsigned(b) || width(a) == 0 || width(b) == 0) return width(a) > width(b) ? a : b;
    const diopiDtype_t with_sign = is_unsigned(a) ? b : a;
    const int bits = width(is_unsigned(a) ? a : b);
    if (width(with_sign) > bits) return with_sign;
    return bits == 8 ? diopi_dtype_int16 : bits == 16 ? diopi_dtype_int32 : diopi_dtype_int64;
}

}  // namespace diopi::composite
