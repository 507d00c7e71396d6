// Operands of several float dtypes, converted to a common one: a loop that chooses between dtypes for each element is
// slow on a host, and a lot of code.
#pragma once

#include <algorithm>

#include "copy.h"
#include "core/team.h"
#include "core/workspace.h"
#include "slices.h"
#include "space/access.h"
#include "space/index.h"

namespace diopi::kernels {

enum class Layout { any, contiguous };

// Calls f(operands), which writes the first `results` of them and reads the others; where one has another dtype or
// layout, f gets a temporary. Its elements lie in the same order, where these lie without gaps.
template <int N, class F>
void with_dtype(Context ctx, const TensorView (&operands)[N], int results, diopiDtype_t dtype, Layout layout, F&& f) {
    const auto differs = [&](int n) {
        if (!operands[n].defined()) return false;
        return operands[n].dtype != dtype || (layout == Layout::contiguous && !operands[n].contiguous());
    };
    TensorView typed[N];
    for (int n = 0; n < N; ++n) {
        typed[n] = differs(n) ? temporary_like(ctx, operands[n], dtype) : operands[n];
        if (layout == Layout::any && broadcast_space<1>(operands[n], {&operands[n]}, Visit::any_order).contiguous())
            std::copy_n(operands[n].strides, kMaxDims, typed[n].strides);
        if (differs(n) && n >= results) copy_elements(ctx, typed[n], operands[n]);
    }
    f(typed);
    for (int n = 0; n < results; ++n) {
        if (differs(n)) copy_elements(ctx, operands[n], typed[n]);
    }
}

// Calls f(type, operands), which writes the first of them, with a type of the set: all are converted to that dtype, or
// to int64 for an integer that the set does not have.
template <class Set, int N, class F>
void with_type(Context ctx, const TensorView (&operands)[N], diopiDtype_t dtype, F&& f) {
    const diopiDtype_t common = is_in<Set>(dtype) || !is_in<Number>(dtype) ? dtype : diopi_dtype_int64;
    if (!is_in<Set>(common)) fail_dtype(dtype);
    with_dtype(ctx, operands, 1, common, Layout::any,
               [&](const TensorView(&typed)[N]) { dispatch<Set>(common, [&](auto type) { f(type, typed); }); });
}

// with_type() for operands that are read often: a host converts halves to floats first.
template <class... Integers, int N, class F>
void with_wide_type(Context ctx, const TensorView (&operands)[N], F&& f) {
    using Wide = Types<float, double, Integers...>;
    using Set = std::conditional_t<Team::kAlone, Wide, Types<float, double, Half, BFloat16, Integers...>>;
    const diopiDtype_t dtype = operands[0].dtype;
    with_type<Set>(ctx, operands, Team::kAlone ? sum_dtype(dtype) : dtype, f);
}

// with_dtype() for the dtype that all are promoted to, on a host, where halves become floats: as runs they are converted by
// instructions. Chips with teams convert while they read and write.
template <int N, class F>
void with_common_dtype(Context ctx, const TensorView (&operands)[N], int results, F&& f, Layout layout = Layout::any) {
    if constexpr (Team::kAlone) {
        with_dtype(ctx, operands, results, sum_dtype(CommonFloat(operands).dtype), layout, f);
    } else {
        f(operands);
    }
}

// Calls f(Type<T>{}) on a device with teams, if all operands are floats or halves of one dtype T; gives
// what f does, or false.
template <int N, class F>
bool dispatch_packs(const TensorView (&operands)[N], F&& f) {
    bool taken = false;
    if constexpr (!Team::kAlone) {
        const CommonFloat common(operands);
        if (common.same && common.dtype != diopi_dtype_float64)
            dispatch<Types<float, Half, BFloat16>>(common.dtype, [&](auto type) { taken = f(type); });
    }
    return taken;
}

// Calls f with the access for operands of with_common_dtype(), which are floats or doubles on a host. A device has few forms:
// what is bound by bandwidth goes by packs.
template <int N, class F>
void dispatch_typed(const TensorView (&operands)[N], F&& f) {
    const CommonFloat common(operands);
    if constexpr (Team::kAlone) {
        dispatch<Types<float, double>>(common.dtype,
                                       [&](auto type) { f(TypedAccess<typename decltype(type)::type>{}); });
    } else if (common.dtype == diopi_dtype_float64) {
        f(MixedAccess<double>{});
    } else if (common.same && common.dtype == diopi_dtype_float32) {
        f(TypedAccess<float>{});
    } else if (common.same) {
        f(HalvesAccess{});
    } else if constexpr (N > 1) {
        f(MixedAccess<float>{});
    }
}

}  // namespace diopi::kernels
