// Access: how a kernel with several operands reads and writes them, settled once per launch instead of once per
// element.
#pragma once

#include <initializer_list>

#include "core/dtype.h"
#include "core/tensor.h"

namespace diopi::kernels {

// All operands are of type T.
template <class T>
struct TypedAccess {
    using Element = T;
    using Compute = ComputeType<T>;
    static constexpr int kBytes = sizeof(T);
    static constexpr bool kExact = !is_half<T>;  // what is stored comes back unchanged

    template <class C>
    DIOPI_HD static C load(const TensorView& tensor, int64_t offset) {
        return cast<C>(tensor.as<T>()[offset]);
    }
    template <class C>
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, C value) {
        tensor.as<T>()[offset] = cast<T>(value);
    }
};

// Each operand has a float dtype of its own.
template <class C>
struct MixedAccess {
    using Element = void;
    using Compute = C;
    static constexpr int kBytes = sizeof(C);
    static constexpr bool kExact = false;

    template <class To>
    DIOPI_HD static To load(const TensorView& tensor, int64_t offset) {
        switch (tensor.dtype) {
            case diopi_dtype_float16: return cast<To>(tensor.as<Half>()[offset]);
            case diopi_dtype_bfloat16: return cast<To>(tensor.as<BFloat16>()[offset]);
            case diopi_dtype_float32: return cast<To>(tensor.as<float>()[offset]);
            default: return cast<To>(tensor.as<double>()[offset]);
        }
    }
    template <class From>
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, From value) {
        switch (tensor.dtype) {
            case diopi_dtype_float16: tensor.as<Half>()[offset] = cast<Half>(value); break;
            case diopi_dtype_bfloat16: tensor.as<BFloat16>()[offset] = cast<BFloat16>(value); break;
            case diopi_dtype_float32: tensor.as<float>()[offset] = cast<float>(value); break;
            default: tensor.as<double>()[offset] = cast<double>(value); break;
        }
    }
};

// All operands are of one half type; which one does not need code of its own.
struct HalvesAccess {
    using Element = uint16_t;
    using Compute = float;
    static constexpr bool kExact = false;

    template <class To>
    DIOPI_HD static To load(const TensorView& tensor, int64_t offset) {
        const uint16_t bits = tensor.as<uint16_t>()[offset];
        return cast<To>(tensor.dtype == diopi_dtype_bfloat16 ? BFloat16::decode(bits) : Half::decode(bits));
    }
    template <class From>
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, From value) {
        const auto number = static_cast<float>(value);
        tensor.as<uint16_t>()[offset] =
            tensor.dtype == diopi_dtype_bfloat16 ? BFloat16::encode(number) : Half::encode(number);
    }
};

// What float dtypes are promoted to.
struct CommonFloat {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    bool same = true;  // whether each operand is of it

    CommonFloat() = default;
    template <int N>
    explicit CommonFloat(const TensorView (&operands)[N]) {
        for (const TensorView& operand : operands) add(operand);
    }

    // An undefined operand has no dtype; one that is no float fails.
    void add(const TensorView& operand) {
        if (!operand.defined()) return;
        if (!is_float_dtype(operand.dtype)) fail_dtype(operand.dtype);
        if (dtype == diopi_dtype_unsupported) dtype = operand.dtype;
        same = same && operand.dtype == dtype;
        dtype = promote(dtype, operand.dtype);
    }
};

// Calls f with the access for these operands, undefined ones left out; a dtype that is no float fails.
template <class F>
void dispatch_access(std::initializer_list<const TensorView*> operands, F&& f) {
    CommonFloat common;
    for (const TensorView* operand : operands) common.add(*operand);
    if (common.same) {
        dispatch<Float>(common.dtype, [&](auto type) { f(TypedAccess<typename decltype(type)::type>{}); });
    } else if (common.dtype == diopi_dtype_float64) {
        f(MixedAccess<double>{});
    } else {
        f(MixedAccess<float>{});
    }
}

}  // namespace diopi::kernels
