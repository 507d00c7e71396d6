// Access: how a kernel with several operands reads and writes them, settled once per launch instead of once per
// element.
#ifndef DIOPI_KERNELS_CORE_ACCESS_H_
#define DIOPI_KERNELS_CORE_ACCESS_H_

#include <initializer_list>

#include "dtype.h"
#include "tensor.h"

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
        return load_as<To>(tensor, offset);
    }
    template <class From>
    DIOPI_HD static void store(const TensorView& tensor, int64_t offset, From value) {
        store_as(tensor, offset, value);
    }
};

// Calls f with the access for these operands, undefined ones left out; a dtype that is no float fails.
template <class F>
void dispatch_access(std::initializer_list<const TensorView*> operands, F&& f) {
    diopiDtype_t common = diopi_dtype_unsupported;
    bool same = true;
    for (const TensorView* operand : operands) {
        if (!operand->defined()) continue;
        if (!is_float_dtype(operand->dtype)) fail_dtype(operand->dtype);
        if (common == diopi_dtype_unsupported) common = operand->dtype;
        same = same && operand->dtype == common;
        common = promote(common, operand->dtype);
    }
    if (same) {
        dispatch<Float>(common, [&](auto type) { f(TypedAccess<typename decltype(type)::type>{}); });
    } else if (common == diopi_dtype_float64) {
        f(MixedAccess<double>{});
    } else {
        f(MixedAccess<float>{});
    }
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_ACCESS_H_
