// diopiScalar_t as a C++ value.
#pragma once

#include <diopi/diopirt.h>

#include "dtype.h"

namespace diopi::kernels {

// The union holds a double exactly when the scalar's dtype is a float.
inline bool is_float_scalar(const diopiScalar_t& scalar) { return is_float_dtype(scalar.stype); }

template <class C>
C scalar_as(const diopiScalar_t& scalar) {
    if (is_complex_dtype(scalar.stype)) fail_dtype(scalar.stype);
    return is_float_scalar(scalar) ? cast<C>(scalar.fval) : cast<C>(scalar.ival);
}

template <class C>
C scalar_as(const diopiScalar_t* scalar, const char* name) {
    require(scalar != nullptr, "the scalar '%s' is null", name);
    return scalar_as<C>(*scalar);
}

template <class C>
C scalar_or(const diopiScalar_t* scalar, C otherwise) {
    return scalar == nullptr ? otherwise : scalar_as<C>(*scalar);
}

inline diopiScalar_t float_scalar(double value) {
    diopiScalar_t result{};
    result.stype = diopi_dtype_float64;
    result.fval = value;
    return result;
}

inline diopiScalar_t integer_scalar(int64_t value, diopiDtype_t dtype = diopi_dtype_int64) {
    diopiScalar_t result{};
    result.stype = dtype;
    result.ival = value;
    return result;
}

// An absent scalar as the number zero, for kernels that do not read it then.
inline const diopiScalar_t* or_zero(const diopiScalar_t* scalar) {
    static const diopiScalar_t zero = integer_scalar(0);
    return scalar != nullptr ? scalar : &zero;
}

}  // namespace diopi::kernels
