// What the C functions take in place of ATen's types: tensor handles, sizes, scalars, dtypes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <optional>

#include <diopi/diopirt.h>
#include <diopi/dtypes.h>

#include "export.h"

namespace dipu {

// A handle is the address of an at::Tensor that outlives the call; an undefined tensor is a null handle.
inline diopiConstTensorHandle_t handle(const at::Tensor& tensor) {
    return tensor.defined() ? reinterpret_cast<diopiConstTensorHandle_t>(&tensor) : nullptr;
}

// The same for a tensor that the callee writes.
inline diopiTensorHandle_t out_handle(const at::Tensor& tensor) {
    return tensor.defined() ? reinterpret_cast<diopiTensorHandle_t>(const_cast<at::Tensor*>(&tensor)) : nullptr;
}

inline const at::Tensor& tensor_of(diopiConstTensorHandle_t th) { return *reinterpret_cast<const at::Tensor*>(th); }

// By ScalarType, so that the dtype of a tensor is one load: vendor functions ask for it on every call.
inline constexpr auto kDtypeOf = [] {
    std::array<diopiDtype_t, static_cast<std::size_t>(c10::ScalarType::NumOptions)> result{};
    result.fill(diopi_dtype_unsupported);
#define DIOPI_DTYPE(name, type) result[static_cast<std::size_t>(c10::ScalarType::type)] = diopi_dtype_##name;
    DIOPI_FOR_EACH_TORCH_DTYPE(DIOPI_DTYPE)
#undef DIOPI_DTYPE
    return result;
}();

// The vendor's name of an ATen dtype; diopi_dtype_unsupported where the contract has none.
inline diopiDtype_t diopi_dtype(c10::ScalarType dtype) { return kDtypeOf[static_cast<std::size_t>(dtype)]; }

// The inverse; throws c10::Error for a dtype that torch lacks.
DIPU_API c10::ScalarType scalar_type(diopiDtype_t dtype);

// A size array that borrows `values`. The array must outlive the call.
inline diopiSize_t size_arg(c10::IntArrayRef values) {
    return diopiSize_t{values.data(), static_cast<int64_t>(values.size())};
}

// No array at all: {null, 0}.
inline diopiSize_t size_arg(const c10::OptionalArrayRef<int64_t>& values) {
    return values.has_value() ? size_arg(*values) : diopiSize_t{nullptr, 0};
}

// Torch has such a number as an uint64, and no other.
inline bool is_beyond_int64(const c10::Scalar& scalar) { return scalar.type() == c10::ScalarType::UInt64; }

// A scalar for `const diopiScalar_t*`. A complex one, or an integer beyond int64, has no C form: the object is then false, and the
// wrapper must take the fallback.
class ScalarArg {
public:
    explicit ScalarArg(const c10::Scalar& scalar) {
        if (scalar.isFloatingPoint()) {
            value_.stype = diopi_dtype_float64;
            value_.fval = scalar.toDouble();
        } else if (scalar.isBoolean()) {
            value_.stype = diopi_dtype_bool;
            value_.ival = scalar.toBool() ? 1 : 0;
        } else if (scalar.isIntegral(false) && !is_beyond_int64(scalar)) {
            value_.stype = diopi_dtype_int64;
            value_.ival = scalar.toLong();
        } else {
            supported_ = false;
        }
    }
    // A number among the elements of tensors of `dtype`: halves round it, as they do a tensor of it.
    ScalarArg(const c10::Scalar& scalar, c10::ScalarType dtype) : ScalarArg(scalar) {
        const auto number = static_cast<float>(value_.fval);
        if (scalar.isFloatingPoint() && dtype == c10::ScalarType::Half) {
            value_.fval = c10::Half(number);
        } else if (scalar.isFloatingPoint() && dtype == c10::ScalarType::BFloat16) {
            value_.fval = c10::BFloat16(number);
        }
    }
    explicit ScalarArg(const std::optional<c10::Scalar>& scalar)
        : ScalarArg(scalar.has_value() ? *scalar : c10::Scalar(0)) {
        given_ = scalar.has_value();
    }

    explicit operator bool() const { return supported_; }
    operator const diopiScalar_t*() const { return given_ ? &value_ : nullptr; }

private:
    diopiScalar_t value_{};
    bool supported_ = true;
    bool given_ = true;
};

// An optional number or flag for `const int64_t*`, `const double*`, `const bool*`; null when absent.
template <class T>
class OptionalArg {
public:
    explicit OptionalArg(const std::optional<T>& value) : value_(value) {}
    operator const T*() const { return value_.has_value() ? &*value_ : nullptr; }

private:
    std::optional<T> value_;
};

// A 0-d tensor on the CPU: it may stand beside device tensors, and takes the scalar form of a function.
inline bool is_host_scalar(const at::Tensor& tensor) {
    return tensor.defined() && tensor.dim() == 0 && tensor.is_cpu();
}

}  // namespace dipu
