// What several derivations say of numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <bit>
#include <optional>
#include <utility>

#include "wrapper/dtypes.h"

namespace dipu::derived {

// Integers and bools as torch's default float, as float operators take them.
inline at::Tensor as_float(const at::Tensor& x) {
    return c10::isIntegralType(x.scalar_type(), true) ? x.to(float_type(x.scalar_type())) : x;
}

// The dtype that they meet in, where that is a half: torch computes those in float32 and rounds once.
template <class... Tensors>
std::optional<c10::ScalarType> half_type(const Tensors&... tensors) {
    const c10::ScalarType dtype = common_type(tensors...);
    return dtype == at::kHalf || dtype == at::kBFloat16 ? std::optional(dtype) : std::nullopt;
}

// Of numbers that meet in halves: the values that they have there, as floats.
inline at::Tensor widened(const at::Tensor& x, c10::ScalarType half) { return x.to(half).to(at::kFloat); }

// Halves as floats, whose range what stands between does not leave.
inline at::Tensor without_half(const at::Tensor& x) { return half_type(x) ? x.to(at::kFloat) : x; }

// Both in the dtype that they meet in. A number on the CPU stays there.
inline std::pair<at::Tensor, at::Tensor> as_common(const at::Tensor& x, const at::Tensor& y) {
    const c10::ScalarType dtype = common_type(x, y);
    return {x.to(dtype), y.to(dtype)};
}

// The same for float operators.
inline std::pair<at::Tensor, at::Tensor> as_common_float(const at::Tensor& x, const at::Tensor& y) {
    const c10::ScalarType dtype = float_type(common_type(x, y));
    return {x.to(dtype), y.to(dtype)};
}

// A 0-d tensor on the device, which a `where` takes in place of a number.
inline at::Tensor number(const at::Tensor& like, const c10::Scalar& value) {
    return at::Tensor(like.new_full({}, value));
}

// Whether the sign is minus, which zeros and NaN have, too: the first bit of a float, as of the integer of its width.
inline at::Tensor is_negative(const at::Tensor& x) {
    if (!c10::isFloatingType(x.scalar_type())) {
        return x.lt(0);
    }
    constexpr c10::ScalarType kWidths[] = {at::kChar, at::kShort, at::kInt, at::kLong};
    return x.view(kWidths[std::countr_zero(static_cast<unsigned>(x.element_size()))]).lt(0);
}

// `x` where the condition holds, else `y`.
inline at::Tensor choose(const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y) {
    return x.where(condition, y);
}
inline at::Tensor choose(const at::Tensor& condition, const c10::Scalar& x, const at::Tensor& y) {
    return number(y, x).where(condition, y);
}

}  // namespace dipu::derived
