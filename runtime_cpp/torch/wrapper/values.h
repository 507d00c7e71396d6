// Arguments that are no tensors, made ready for a vendor function: sizes, scalars, words.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/IListRef.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/DimVector.h>
#include <c10/util/OptionalArrayRef.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "handles.h"
#include "status.h"

namespace dipu {

// Numbers for `diopiSize_t`; none at all means {null, 0}. With a length N a single number stands for all, and a list of
// another length has no C form: the object is then false, as for a 3-D convolution where the contract has 2-D ones.
template <std::size_t N = 0>
class SizeArg {
public:
    // Takes int64_t, IntArrayRef, OptionalIntArrayRef, DimVector: whatever stays alive until the call.
    explicit SizeArg(at::IntArrayRef values) {
        if (N != 0 && values.size() == 1) {
            expanded_.assign(N, values[0]);
            values_ = expanded_;
        } else {
            values_ = values;
        }
    }
    explicit SizeArg(const at::OptionalIntArrayRef& values) : SizeArg(values.value_or(at::IntArrayRef())) {}
    explicit SizeArg(const std::optional<int64_t>& value)
        : expanded_(value.has_value() ? (N == 0 ? 1 : N) : 0, value.value_or(0)),
          values_(expanded_) {}
    explicit SizeArg(int64_t value) : SizeArg(std::optional<int64_t>(value)) {}
    explicit SizeArg(const at::DimVector& values) : expanded_(values), values_(expanded_) {}
    SizeArg(const SizeArg&) = delete;
    SizeArg& operator=(const SizeArg&) = delete;

    explicit operator bool() const { return N == 0 || values_.empty() || values_.size() == N; }
    operator diopiSize_t() const { return size_arg(values_); }

private:
    at::DimVector expanded_;
    at::IntArrayRef values_;
};

// Numbers for `diopiSize_t*`; null when absent.
class OptionalSizeArg {
public:
    explicit OptionalSizeArg(const at::OptionalIntArrayRef& values) : given_(values.has_value()) {
        if (given_) {
            size_ = size_arg(*values);
        }
    }
    explicit OptionalSizeArg(const at::DimVector& values)
        : kept_(values),
          size_(size_arg(at::IntArrayRef(kept_))),
          given_(true) {}
    OptionalSizeArg(const OptionalSizeArg&) = delete;
    OptionalSizeArg& operator=(const OptionalSizeArg&) = delete;

    operator diopiSize_t*() { return given_ ? &size_ : nullptr; }

private:
    at::DimVector kept_;
    diopiSize_t size_{nullptr, 0};
    bool given_;
};

// False, with the cause for the report, when an argument has no C form.
template <class... Arguments>
bool supported(const Arguments&... arguments) {
    return (static_cast<bool>(arguments) && ...) || refuse("complex numbers, or a list of another length");
}

// Whether nothing is lost where a function of real numbers takes `scalar` or, in `dtype`, `tensor`.
inline bool is_real(const at::Scalar& scalar) {
    constexpr int64_t kCounted = int64_t{1} << 53;  // as far as doubles count
    return !scalar.isComplex() &&
           (!scalar.isIntegral(false) || (scalar.toLong() <= kCounted && scalar.toLong() >= -kCounted));
}
inline bool castable(const at::Tensor& tensor, c10::ScalarType dtype) {
    return !tensor.defined() || !tensor.is_complex() || c10::isComplexType(dtype);
}
inline bool castable(const std::optional<at::Tensor>& tensor, c10::ScalarType dtype) {
    return !tensor.has_value() || castable(*tensor, dtype);
}

// Some functions of the contract take a scalar without const; they only read it.
inline diopiScalar_t* mutable_scalar(const ScalarArg& scalar) {
    return const_cast<diopiScalar_t*>(static_cast<const diopiScalar_t*>(scalar));
}

// An optional scalar as an optional number.
template <class T>
std::optional<T> scalar_cast(const std::optional<at::Scalar>& scalar) {
    return scalar.has_value() ? std::optional<T>(scalar->to<T>()) : std::nullopt;
}

// e.g. "floor" of torch.div. Throws c10::Error for a word that torch has not either.
DIPU_API diopiRoundMode_t round_mode(const std::optional<std::string_view>& mode);

DIPU_API diopiMemoryFormat_t memory_format(const std::optional<at::MemoryFormat>& format);

// Where the result of an operator on several tensors lies: scalars on the CPU do not count.
template <class... Others>
c10::Device device_of(const at::Tensor& first, const Others&... others) {
    if constexpr (sizeof...(others) == 0) {
        return first.device();
    } else {
        return first.is_privateuseone() ? first.device() : dipu::device_of(others...);  // torch has one in at
    }
}

inline at::IntArrayRef sizes_of(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() && tensor->defined() ? tensor->sizes() : at::IntArrayRef();
}

// The first tensor of a list. Throws c10::Error when there is none.
DIPU_API const at::Tensor& first_of(const at::ITensorListRef& tensors);

}  // namespace dipu
