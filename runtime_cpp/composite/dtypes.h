// The element types of temporaries that follow from those of the caller's tensors.
#pragma once

#include <diopi/diopirt.h>
#include <diopi/dtypes.h>

#include <cstdint>
#include <type_traits>

namespace diopi::composite {

constexpr bool is_complex(diopiDtype_t dtype) {
#define DIOPI_IS(name, parts) dtype == diopi_dtype_##name ||
    return DIOPI_FOR_EACH_COMPLEX(DIOPI_IS) false;
#undef DIOPI_IS
}
constexpr bool is_float(diopiDtype_t dtype) {
#define DIOPI_IS(name, digits, exponent) dtype == diopi_dtype_##name ||
    return DIOPI_FOR_EACH_FLOAT(DIOPI_IS) false;
#undef DIOPI_IS
}
constexpr bool is_whole(diopiDtype_t dtype) { return !is_float(dtype) && !is_complex(dtype); }
constexpr bool is_unsigned(diopiDtype_t dtype) {
#define DIOPI_IS(name, type) (dtype == diopi_dtype_##name && std::is_unsigned_v<type>) ||
    return DIOPI_FOR_EACH_INTEGER(DIOPI_IS) false;
#undef DIOPI_IS
}

// In bits; a bool has none.
constexpr int width(diopiDtype_t dtype) {
    if (dtype == diopi_dtype_bool) return 0;
    switch (dtype) {
#define DIOPI_WIDTH(name, bytes) \
    case diopi_dtype_##name: return 8 * (bytes);
        DIOPI_FOR_EACH_DTYPE(DIOPI_WIDTH)
#undef DIOPI_WIDTH
        default: return 0;
    }
}

// The type whose parts are of `dtype`, and the type of the parts.
constexpr diopiDtype_t complex_of(diopiDtype_t dtype) {
    switch (dtype) {
#define DIOPI_COMPLEX_OF(name, parts) \
    case diopi_dtype_##parts: return diopi_dtype_##name;
        DIOPI_FOR_EACH_COMPLEX(DIOPI_COMPLEX_OF)
#undef DIOPI_COMPLEX_OF
        default: return diopi_dtype_complex64;
    }
}
constexpr diopiDtype_t real_of(diopiDtype_t dtype) {
    switch (dtype) {
#define DIOPI_REAL_OF(name, parts) \
    case diopi_dtype_##name: return diopi_dtype_##parts;
        DIOPI_FOR_EACH_COMPLEX(DIOPI_REAL_OF)
#undef DIOPI_REAL_OF
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
