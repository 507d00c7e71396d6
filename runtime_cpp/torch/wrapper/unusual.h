// Calls that a vendor's function does not serve as they stand, though torch may: operands of several dtypes, memory that is written and
// shared, numbers beyond a dtype. Each is recognized in nanoseconds; then torch's own kernel on the CPU computes the call or refuses it.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <optional>
#include <type_traits>

#include "export.h"

namespace dipu {

// Sends the operator that runs now to torch's kernel on the CPU, which throws or computes; always returns false.
DIPU_API bool ask_torch(const char* cause) noexcept;

// Of a function of floats: whole numbers torch computes in its own way, or refuses.
inline constexpr char kWholeNumbers[] = "whole numbers";
inline bool is_fraction(c10::ScalarType dtype) { return !c10::isIntegralType(dtype, true) || ask_torch(kWholeNumbers); }

// Whether more than one element of `out` is at one place, and whether `out` and `other` share an element, as far as torch can tell. With
// `same`, sharing all of them at the same indices does not count.
DIPU_API bool overlaps_itself(const at::Tensor& out);
DIPU_API bool overlaps(const at::Tensor& out, const at::Tensor& other, bool same);

// Whether an integer keeps `value`, a half or a float does not make it infinite.
DIPU_API bool holds(c10::ScalarType dtype, const at::Scalar& value);

namespace unusual_detail {

// Whether `test` holds for each tensor of an argument of any kind.
template <class Test, class Arg>
bool all(const Test& test, const Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) {
        return !arg.defined() || test(arg);
    } else if constexpr (std::is_same_v<Arg, std::optional<at::Tensor>>) {
        return !arg.has_value() || !arg->defined() || test(*arg);
    } else if constexpr (std::is_same_v<Arg, at::TensorList> || std::is_same_v<Arg, at::ITensorListRef> ||
                         std::is_same_v<Arg, c10::List<std::optional<at::Tensor>>>) {
        for (const auto& tensor : arg) {
            if (!all(test, std::optional<at::Tensor>(tensor))) {
                return false;
            }
        }
        return true;
    } else {
        return true;
    }
}

inline const c10::StorageImpl* memory(const at::Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    return impl.has_storage() ? impl.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace unusual_detail

// Whether the operands have one dtype.
template <class First, class... Others>
bool one_dtype(const First& first, const Others&... others) {
    std::optional<c10::ScalarType> dtype;
    const auto alike = [&](const at::Tensor& tensor) {
        if (!dtype.has_value()) {
            dtype = tensor.scalar_type();
        }
        return *dtype == tensor.scalar_type();
    };
    const bool one = unusual_detail::all(alike, first) && (unusual_detail::all(alike, others) && ...);
    return one || ask_torch("operands of several dtypes");
}

// Whether each element of `out` has a place of its own, which none of the arguments has, or (`kSame`) only at the same index.
template <bool kSame = false, class... Args>
bool is_apart(const at::Tensor& out, const Args&... args) {
    const c10::TensorImpl& impl = *out.unsafeGetTensorImpl();
    [[maybe_unused]] const auto apart = [&](const at::Tensor& tensor) {
        return unusual_detail::memory(tensor) != unusual_detail::memory(out) || !overlaps(out, tensor, kSame);
    };
    const bool alone = (impl.is_contiguous() || impl.is_non_overlapping_and_dense() || !overlaps_itself(out)) &&
                       (unusual_detail::all(apart, args) && ...);
    return alone || ask_torch("memory that is written and shared");
}

// Whether `value` is a number of `dtype`. What is complex has no C form, which others look at.
inline bool is_number_of(c10::ScalarType dtype, const at::Scalar& value) {
    const bool wide = !c10::isIntegralType(dtype, true) && dtype != c10::kHalf && value.isIntegral(true);
    return wide || value.isComplex() || holds(dtype, value) || ask_torch("a number beyond the dtype");
}
inline bool is_number_of(c10::ScalarType dtype, const std::optional<at::Scalar>& value) {
    return !value.has_value() || is_number_of(dtype, *value);
}

}  // namespace dipu
