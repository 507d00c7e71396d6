// The element expressions of the schemas at run time: promote(T, U), float(T), sum(T), complex(T), real(T).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>

#include <initializer_list>
#include <optional>

#include "export.h"

namespace dipu {

// promote(T, U) of dtypes
inline c10::ScalarType promoted(c10::ScalarType first, c10::ScalarType second) {
    return c10::promoteTypes(first, second);
}

// float(T): T if it is a float (or complex), else torch's default dtype
inline c10::ScalarType float_type(c10::ScalarType dtype) {
    return c10::isIntegralType(dtype, true) ? c10::typeMetaToScalarType(c10::get_default_dtype()) : dtype;
}

// sum(T): i64 for bool and integers, else T
inline c10::ScalarType sum_type(c10::ScalarType dtype) { return c10::isIntegralType(dtype, true) ? c10::kLong : dtype; }

// complex(T): the complex dtype with parts of T; real(T): the dtype of T's parts
inline c10::ScalarType complex_type(c10::ScalarType dtype) { return c10::toComplexType(dtype); }
inline c10::ScalarType real_type(c10::ScalarType dtype) { return c10::toRealValueType(dtype); }

// The dtype in which `input` enters a sum whose result is `out`: its own, unless the caller asked for another result.
inline c10::ScalarType summand_type(const at::Tensor& input, const at::Tensor& out) {
    return sum_type(input.scalar_type()) == out.scalar_type() ? input.scalar_type() : out.scalar_type();
}

// What takes part in a promotion: a tensor, or a number, which only raises the category (bool, integer, float, complex).
struct Operand {
    Operand(const at::Tensor& given) : tensor(given.defined() ? &given : nullptr) {}
    Operand(const std::optional<at::Tensor>& given) : tensor(given && given->defined() ? &*given : nullptr) {}
    Operand(const at::Scalar& given) : number(&given) {}

    const at::Tensor* tensor = nullptr;
    const at::Scalar* number = nullptr;
};

// The dtype that torch computes with when operands meet: numbers and 0-d tensors promote less than others.
DIPU_API c10::ScalarType promoted_operands(std::initializer_list<Operand> operands);

inline c10::ScalarType common_type(const at::Tensor& tensor) { return tensor.scalar_type(); }

template <class First, class... Others>
c10::ScalarType common_type(const First& first, const Others&... others) {
    return promoted_operands({Operand(first), Operand(others)...});
}

// Throws c10::Error, in torch's words, where `out` cannot hold results of the dtype `result`.
DIPU_API void check_cast(c10::ScalarType result, const at::Tensor& out);

// Whether each tensor of a list keeps its dtype when it meets `other`; torch's own loop takes the others.
DIPU_API bool keeps_dtypes(at::TensorList tensors, const Operand& other);

}  // namespace dipu
