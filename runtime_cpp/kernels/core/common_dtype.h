// Operands of several float dtypes, converted to a common one: a loop that chooses between dtypes for each element is slow
// on a host, and a lot of code.
#ifndef DIOPI_KERNELS_CORE_COMMON_DTYPE_H_
#define DIOPI_KERNELS_CORE_COMMON_DTYPE_H_

#include "access.h"
#include "copy.h"
#include "team.h"
#include "workspace.h"

namespace diopi::kernels {

// Calls f(operands), which writes the first `results` of them and reads the others. On a host all have the dtype that they
// are promoted to: where an operand is of another one, f gets a temporary. Chips with teams convert while they read and
// write.
template <int N, class F>
void with_common_dtype(Context ctx, const TensorView (&operands)[N], int results, F&& f) {
    if constexpr (Team::kAlone) {
        CommonFloat common;
        for (const TensorView& operand : operands) common.add(operand);
        if (common.same) return f(operands);
        const auto differs = [&](int n) { return operands[n].defined() && operands[n].dtype != common.dtype; };
        TensorView typed[N];
        for (int n = 0; n < N; ++n) {
            typed[n] = differs(n) ? temporary_like(ctx, operands[n], common.dtype) : operands[n];
            if (differs(n) && n >= results) copy_elements(ctx, typed[n], operands[n]);
        }
        f(typed);
        for (int n = 0; n < results; ++n) {
            if (differs(n)) copy_elements(ctx, operands[n], typed[n]);
        }
    } else {
        f(operands);
    }
}

// dispatch_access() for operands of with_common_dtype(), which are never mixed on a host.
template <class F>
void dispatch_typed(std::initializer_list<const TensorView*> operands, F&& f) {
    if constexpr (Team::kAlone) {
        CommonFloat common;
        for (const TensorView* operand : operands) common.add(*operand);
        dispatch<Float>(common.dtype, [&](auto type) { f(TypedAccess<typename decltype(type)::type>{}); });
    } else {
        dispatch_access(operands, f);
    }
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_COMMON_DTYPE_H_
