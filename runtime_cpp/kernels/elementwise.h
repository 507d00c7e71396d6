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
#ifndef DIOPI_KERNELS_ELEMENTWISE_H_
#define DIOPI_KERNELS_ELEMENTWISE_H_

#include <diopi/diopirt.h>

#include <array>
#include <utility>

#include "core/index.h"
#include "core/launcher.h"
#include "core/math.h"
#include "core/pointwise.h"
#include "core/promotion.h"

#if defined(__CUDACC__)
#include "core/device_expression.h"
#endif

namespace diopi::kernels {
namespace elementwise_detail {

template <class Argument>
constexpr bool is_tensor =
    std::is_same_v<Argument, diopiTensorHandle_t> || std::is_same_v<Argument, diopiConstTensorHandle_t>;

template <class... Arguments>
constexpr int tensor_count = (0 + ... + (is_tensor<Arguments> ? 1 : 0));

// The set's dtypes, half types replaced by what they compute in.
template <class Set>
struct ComputeSet;
template <>
struct ComputeSet<Any> {
    using type = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t, bool>;
};
template <>
struct ComputeSet<Number> {
    using type = Types<float, double, int64_t, int32_t, int16_t, int8_t, uint8_t>;
};
template <>
struct ComputeSet<Float> {
    using type = Types<float, double>;
};
template <>
struct ComputeSet<Integer> {
    using type = Integer;
};

// Position of each argument among the tensors or among the scalars.
template <class... Arguments>
constexpr std::array<int, sizeof...(Arguments)> slots() {
    std::array<int, sizeof...(Arguments)> result{};
    const bool tensors[] = {is_tensor<Arguments>...};
    int seen[2] = {0, 0};
    for (size_t i = 0; i < sizeof...(Arguments); ++i) result[i] = seen[tensors[i] ? 1 : 0]++;
    return result;
}

inline diopiScalar_t as_scalar(const diopiScalar_t* scalar) {
    require(scalar != nullptr, "a scalar argument is null");
    return *scalar;
}
inline diopiScalar_t as_scalar(double value) { return float_scalar(value); }
inline diopiScalar_t as_scalar(int64_t value) { return integer_scalar(value); }
inline diopiScalar_t as_scalar(bool value) { return integer_scalar(value ? 1 : 0, diopi_dtype_bool); }

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
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = Kernel::template apply<C>(sources[i]...);
}

template <class C, class>
using Same = C;

template <class Kernel, class C, class... Arguments>
using ResultOf = decltype(Kernel::template apply<C>(std::declval<Same<C, Arguments>>()...));

template <class Kernel, class C, class... Arguments>
struct Expression {
    using Result = ResultOf<Kernel, C, Arguments...>;
    static_assert(std::is_same_v<Result, C> || std::is_same_v<Result, bool>,
                  "an expression gives the compute type or bool");

    static void loop(const void* const* inputs, const double* constants, void* out, int64_t first, int64_t count) {
        loop(inputs, constants, out, first, count, std::index_sequence_for<Arguments...>{});
    }

    template <size_t... I>
    static void loop(const void* const* inputs, const double* constants, void* out, int64_t first, int64_t count,
                     std::index_sequence<I...>) {
        constexpr auto slot = slots<Arguments...>();
        apply_to_run<Kernel, C>(static_cast<Result*>(out) + first, count,
                                source<C, is_tensor<Arguments>>(inputs, constants, slot[I], first)...);
    }
};

// What one call of elementwise() reads of its arguments: the output's view first, then the inputs'.
template <class... Arguments>
struct Call {
    static constexpr int kTensors = tensor_count<Arguments...>;
    static constexpr int kScalars = static_cast<int>(sizeof...(Arguments)) - kTensors;
    static_assert(kTensors <= kMaxInputs && kScalars <= kMaxInputs, "too many arguments for one elementwise kernel");

    TensorView views[kTensors + 1];
    diopiScalar_t scalars[kScalars + 1];
    ResultType result_type;

    Call(diopiTensorHandle_t out, Arguments... arguments) {
        require(out != nullptr, "the tensor 'out' is null");
        read_view(out, views[0]);
        int tensors = 0;
        int scalar = 0;
        (read(arguments, tensors, scalar), ...);
    }

    template <class Argument>
    void read(Argument argument, int& tensors, int& scalar) {
        if constexpr (is_tensor<Argument>) {
            require(argument != nullptr, "an input tensor is null");
            read_view(argument, views[++tensors]);
            result_type.add(views[tensors]);
        } else {
            scalars[scalar] = as_scalar(argument);
            // a count or a flag says nothing about the dtype of the result
            if constexpr (!std::is_integral_v<Argument>) result_type.add(scalars[scalar]);
            ++scalar;
        }
    }

    template <class C>
    void constants(double* target) const {
        for (int i = 0; i < kScalars; ++i) {
            const C value = scalar_as<C>(scalars[i]);
            memcpy(&target[i], &value, sizeof(C));
        }
    }

    // The inputs are of dtype `in`, the output of dtype `out`.
    bool typed(diopiDtype_t in, diopiDtype_t out) const {
        bool same = views[0].dtype == out;
        for (int i = 1; i <= kTensors; ++i) same = same && views[i].dtype == in;
        return same;
    }

    // Contiguous, one shape, `compute` for all inputs and `result` for the output.
    bool dense(diopiDtype_t compute, diopiDtype_t result) const {
        if (views[0].dtype != result || !views[0].contiguous()) return false;
        for (int i = 1; i <= kTensors; ++i) {
            if (views[i].dtype != compute || !views[i].same_sizes(views[0]) || !views[i].contiguous()) return false;
        }
        return true;
    }
};

#if defined(__CUDACC__)

// Argument number `i` of a call: which operand or constant it is.
template <size_t i, class... Arguments>
struct Placed {
    static constexpr bool tensors[] = {is_tensor<Arguments>...};
    static constexpr int slot = slots<Arguments...>()[i];
    using type = Argument<tensors[i], tensors[i] ? slot + 1 : slot>;
};

// Types that an expression over C may read: C itself, or the half types that compute in it.
template <class C>
struct StorageSet {
    using type = Types<C>;
};
template <>
struct StorageSet<float> {
    using type = Types<float, Half, BFloat16>;
};

template <class Kernel, class C, class... Arguments, size_t... I>
diopiError_t launch_mixed(diopiStreamHandle_t stream, const Call<Arguments...>& call,
                          const Space<tensor_count<Arguments...> + 1>& space, std::index_sequence<I...>) {
    using Mixed = MixedTask<Kernel, C, typename Placed<I, Arguments...>::type...>;
    Mixed task;
    for (int n = 0; n < Mixed::kOperands; ++n) {
        require_storable(call.views[n]);
        task.operands[n] = {call.views[n].data, call.views[n].dtype};
    }
    for (int k = 0; k < Mixed::kConstants; ++k) task.constants[k] = scalar_as<C>(call.scalars[k]);
    task.space = space;
    return launch::parallel_for(stream, space.numel, task);
}

template <class Kernel, class C, class In, class... Arguments, size_t... I>
diopiError_t launch_over(diopiStreamHandle_t stream, const Call<Arguments...>& call,
                         const Space<tensor_count<Arguments...> + 1>& space, std::index_sequence<I...>) {
    using Result = ResultOf<Kernel, C, Arguments...>;
    using Out = std::conditional_t<std::is_same_v<Result, C>, In, bool>;
    using Typed = TypedExpression<Kernel, C, In, Out, typename Placed<I, Arguments...>::type...>;
    Typed expression;
    for (int n = 0; n < Typed::kOperands; ++n) expression.operands[n] = call.views[n].data;
    for (int k = 0; k < Typed::kConstants; ++k) expression.constants[k] = scalar_as<C>(call.scalars[k]);
    return diopi::kernels::launch_expression<In, Out>(stream, expression, space);
}

#endif

template <class Kernel, class C, class... Arguments>
void launch_expression(diopiContextHandle_t ctx, const Call<Arguments...>& call) {
    constexpr int kTensors = Call<Arguments...>::kTensors;
    constexpr const char* failed = "the device did not take the launch of an elementwise kernel";
#if defined(__CUDACC__)
    const diopiStreamHandle_t stream = stream_of(ctx);
    const Space<kTensors + 1> space = broadcast_space<kTensors + 1>(call.views[0], call.views, Visit::any_order);
    const diopiDtype_t in = kTensors > 0 ? call.views[1].dtype : call.views[0].dtype;
    constexpr diopiDtype_t result = dtype_of<ResultOf<Kernel, C, Arguments...>>;
    if (!is_in<typename StorageSet<C>::type>(in) || !call.typed(in, result == dtype_of<C> ? in : result)) {
        check(launch_mixed<Kernel, C>(stream, call, space, std::index_sequence_for<Arguments...>{}), failed);
        return;
    }
    dispatch<typename StorageSet<C>::type>(in, [&](auto type) {
        using In = typename decltype(type)::type;
        check(launch_over<Kernel, C, In>(stream, call, space, std::index_sequence_for<Arguments...>{}), failed);
    });
#else
    using Loops = Expression<Kernel, C, Arguments...>;
    constexpr diopiDtype_t compute = dtype_of<C>;
    constexpr diopiDtype_t result = dtype_of<typename Loops::Result>;
    if (call.dense(compute, result)) {
        DenseExpression task{};
        task.loop = &Loops::loop;
        task.count = call.views[0].numel;
        task.out = call.views[0].data;
        for (int i = 0; i < kTensors; ++i) task.inputs[i] = call.views[i + 1].data;
        call.template constants<C>(task.constants);
        check(launch_dense(stream_of(ctx), task), failed);
        return;
    }
    Pointwise plan;
    plan.loop = &Loops::loop;
    call.template constants<C>(plan.constants);
    plan_pointwise(plan, call.views, kTensors, compute, result);
    check(launch_pointwise(stream_of(ctx), plan), failed);
#endif
}

}  // namespace elementwise_detail

template <class Kernel, class Set, Compute rule, class... Arguments>
diopiError_t elementwise(diopiContextHandle_t ctx, diopiTensorHandle_t out, Arguments... arguments) {
    return guarded([&] {
        const elementwise_detail::Call<Arguments...> call(out, arguments...);
        if (call.views[0].numel == 0) return;
        const diopiDtype_t compute = call.result_type.compute_dtype(rule, call.views[0].dtype);
        dispatch<typename elementwise_detail::ComputeSet<Set>::type>(compute, [&](auto type) {
            elementwise_detail::launch_expression<Kernel, typename decltype(type)::type>(ctx, call);
        });
    });
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_ELEMENTWISE_H_
