// elementwise<Kernel, Set, Compute>(ctx, out, arguments...): one output, one value per element, any layouts and dtypes.
//
//   struct AddKernel {  // input + alpha * other
//       template <class C>
//       static DIOPI_HD C apply(C input, C other, C alpha) { return input + alpha * other; }
//   };
//   elementwise<AddKernel, Number, Compute::promote>(ctx, out, input, other, alpha);
//
// An argument is a tensor handle, a `const diopiScalar_t*` (never null here), a double, an int64_t or a bool; apply()
// takes them in the order of the call, all as C, and gives C or bool. `Set` holds the dtypes in which the expression
// may compute. The output has the final shape; inputs broadcast to it. An output may also be an input, element by
// element.
#pragma once

#include <diopi/diopirt.h>

#include <array>
#include <utility>

#include "core/launcher.h"
#include "math/math.h"
#include "pointwise.h"
#include "space/index.h"

#if defined(__CUDACC__)
#include "device_expression.h"
#endif

namespace diopi::kernels {
namespace elementwise_detail {

template <class Argument>
constexpr bool is_tensor =
    std::is_same_v<Argument, diopiTensorHandle_t> || std::is_same_v<Argument, diopiConstTensorHandle_t>;

// Position of each argument among the tensors or among the scalars.
template <bool... tensors>
constexpr std::array<int, sizeof...(tensors)> slots() {
    std::array<int, sizeof...(tensors)> result{};
    int seen[2] = {0, 0};
    size_t i = 0;
    ((result[i++] = seen[tensors ? 1 : 0]++), ...);
    return result;
}

template <class Kernel, class C, bool... tensors>
using ResultOf = decltype(Kernel::template apply<C>((static_cast<void>(tensors), C())...));

#if defined(__CUDACC__)

// Argument number `i` of a call: which operand or constant it is.
template <size_t i, bool... tensors>
struct Placed {
    static constexpr bool all[] = {tensors...};
    static constexpr int slot = slots<tensors...>()[i];
    using type = Argument<all[i], all[i] ? slot + 1 : slot>;
};

// Types that an expression over C may read: C itself, or the half types that compute in it.
template <class C>
using StorageSet = std::conditional_t<std::is_same_v<C, float>, Types<float, Half, BFloat16>, Types<C>>;

template <class Kernel, class C, bool... tensors, size_t... I>
diopiError_t launch_mixed(diopiStreamHandle_t stream, const ElementwiseCall& call,
                          const Space<(0 + ... + tensors) + 1>& space, std::index_sequence<I...>) {
    MixedTask<Kernel, C, typename Placed<I, tensors...>::type...> task;
    for (int n = 0; n < task.kOperands; ++n) {
        require_storable(call.views[n]);
        task.operands[n] = {call.views[n].data, call.views[n].dtype};
    }
    for (int k = 0; k < task.kConstants; ++k) task.constants[k] = scalar_as<C>(call.values[k]);
    task.space = space;
    return launch::parallel_for(stream, space.numel, task);
}

template <class Kernel, class C, class In, bool... tensors, size_t... I>
diopiError_t launch_over(diopiStreamHandle_t stream, const ElementwiseCall& call,
                         const Space<(0 + ... + tensors) + 1>& space, std::index_sequence<I...>) {
    using Result = ResultOf<Kernel, C, tensors...>;
    using Out = std::conditional_t<std::is_same_v<Result, C>, In, bool>;
    using Typed = TypedExpression<Kernel, C, In, Out, typename Placed<I, tensors...>::type...>;
    Typed expression;
    for (int n = 0; n < Typed::kOperands; ++n) expression.operands[n] = call.views[n].data;
    for (int k = 0; k < Typed::kConstants; ++k) expression.constants[k] = scalar_as<C>(call.values[k]);
    return diopi::kernels::launch_expression<In, Out>(stream, expression, space);
}

template <class Kernel, class C, bool... tensors>
diopiError_t run_expression(diopiStreamHandle_t stream, const ElementwiseCall& call) {
    constexpr int operands = 1 + (0 + ... + tensors);
    constexpr diopiDtype_t result = dtype_of<ResultOf<Kernel, C, tensors...>>;
    constexpr auto all = std::make_index_sequence<sizeof...(tensors)>{};
    const TensorView* views[operands];
    for (int n = 0; n < operands; ++n) views[n] = &call.views[n];
    const Space<operands> space = broadcast_space<operands>(call.views[0], views, Visit::any_order);
    const diopiDtype_t in = call.views[operands > 1 ? 1 : 0].dtype;
    diopiError_t status = diopiSuccess;
    if (!is_in<StorageSet<C>>(in) || !call.typed(in, result == dtype_of<C> ? in : result))
        return launch_mixed<Kernel, C, tensors...>(stream, call, space, all);
    dispatch<StorageSet<C>>(in, [&](auto type) {
        status = launch_over<Kernel, C, typename decltype(type)::type, tensors...>(stream, call, space, all);
    });
    return status;
}

#else

template <class C, bool tensor>
struct Source;
template <class C>
struct Source<C, true> {
    const C* values;
    C operator[](int64_t i) const { return values[i]; }
};
template <class C>
struct Source<C, false> {
    C value;
    C operator[](int64_t) const { return value; }
};

template <class C, bool tensor>
Source<C, tensor> source(const void* const* inputs, const double* constants, int slot, int64_t first) {
    if constexpr (tensor) {
        return {static_cast<const C*>(inputs[slot]) + first};
    } else {
        return {*reinterpret_cast<const C*>(&constants[slot])};
    }
}

template <class Kernel, class C, class Result, class... Sources>
DIOPI_FLATTEN void apply_to_run(Result* out, int64_t count, Sources... sources) {
    // no element depends on another one, even where the output is one of the inputs
    DIOPI_IVDEP
    for (int64_t i = 0; i < count; ++i) out[i] = Kernel::template apply<C>(sources[i]...);
}

template <class Kernel, class C, bool... tensors, size_t... I>
void run_loop(const void* const* inputs, const double* constants, void* out, int64_t first, int64_t count,
              std::index_sequence<I...>) {
    constexpr auto slot = slots<tensors...>();
    apply_to_run<Kernel, C>(static_cast<ResultOf<Kernel, C, tensors...>*>(out) + first, count,
                            source<C, tensors>(inputs, constants, slot[I], first)...);
}

template <class Kernel, class C, bool... tensors>
void run_expression(const void* const* inputs, const double* constants, void* out, int64_t first, int64_t count) {
    run_loop<Kernel, C, tensors...>(inputs, constants, out, first, count,
                                    std::make_index_sequence<sizeof...(tensors)>{});
}

#endif

// No expression computes in a half type.
template <class Kernel, class C, bool... tensors>
constexpr ExpressionForm form_in() {
    if constexpr (is_half<C>) {
        return {dtype_of<C>, dtype_of<C>, nullptr};
    } else {
        return {dtype_of<C>, dtype_of<ResultOf<Kernel, C, tensors...>>, &run_expression<Kernel, C, tensors...>};
    }
}

template <class Kernel, bool... tensors, class... C>
const ExpressionForm* forms(Types<C...>) {
    static constexpr ExpressionForm all[] = {form_in<Kernel, C, tensors...>()..., kNoForm};
    return all;
}

}  // namespace elementwise_detail

template <class Kernel, class Set, Compute rule, class... Arguments>
diopiError_t elementwise(diopiContextHandle_t ctx, diopiTensorHandle_t out, Arguments... arguments) {
    using namespace elementwise_detail;
    constexpr int tensors = (0 + ... + is_tensor<Arguments>), numbers = sizeof...(Arguments) - tensors;
    static_assert(tensors <= kMaxInputs && numbers <= kMaxInputs, "too many arguments for one elementwise kernel");
    return launch_elementwise(ctx, out, {arguments...}, rule, forms<Kernel, is_tensor<Arguments>...>(Set{}));
}

}  // namespace diopi::kernels
