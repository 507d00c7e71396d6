// Elementwise expressions for a device of many threads: each takes a few elements, by as few accesses as it can.
#pragma once

#include <type_traits>
#include <utility>

#include "core/device_code.h"
#include "core/launcher.h"
#include "core/tensor.h"
#include "space/index.h"
#include "space/packed.h"
#include "space/small_space.h"

namespace diopi::kernels {

// What an argument of an expression is: the tensor views[at], or the constant constants[at].
template <bool is_tensor, int place>
struct Argument {
    static constexpr bool kTensor = is_tensor;
    static constexpr int kPlace = place;
};

// An expression over inputs of type In, computed in C and stored as Out. Operand 0 is the output.
template <class Kernel, class C, class In, class Out, class... Arguments>
struct TypedExpression {
    static constexpr int kInputs = (0 + ... + (Arguments::kTensor ? 1 : 0));
    static constexpr int kOperands = kInputs + 1;
    static constexpr int kConstants = static_cast<int>(sizeof...(Arguments)) - kInputs;

    void* operands[kOperands];
    C constants[kConstants + 1];

    DIOPI_HD Out* out() const { return static_cast<Out*>(operands[0]); }
    DIOPI_HD const In* input(int n) const { return static_cast<const In*>(operands[n]); }

    // inputs[operand - 1]
    DIOPI_HD Out evaluate(const In* inputs) const {
        return cast<Out>(Kernel::template apply<C>(value<Arguments>(inputs)...));
    }

    template <class A>
    DIOPI_HD C value(const In* inputs) const {
        if constexpr (A::kTensor) {
            return cast<C>(inputs[A::kPlace - 1]);
        } else {
            return constants[A::kPlace];
        }
    }
};

struct Numbers {
    void* data;
    diopiDtype_t dtype;

    DIOPI_HD TensorView view() const {
        TensorView tensor;
        tensor.data = data;
        tensor.dtype = dtype;
        return tensor;
    }
};

// load_as and store_as as functions that are called: a switch per operand would be most of the code.
template <class To>
DIOPI_HD_CALLED To load_number(Numbers from, int64_t offset) {
    return load_as<To>(from.view(), offset);
}

template <class From>
DIOPI_HD_CALLED void store_number(Numbers to, int64_t offset, From value) {
    store_as(to.view(), offset, value);
}

// An expression over operands of whatever dtypes, one element per thread: a switch over the dtype per load.
template <class Kernel, class C, class... Arguments>
struct MixedTask {
    static constexpr int kOperands = 1 + (0 + ... + (Arguments::kTensor ? 1 : 0));
    static constexpr int kConstants = static_cast<int>(sizeof...(Arguments)) + 1 - kOperands;

    Space<kOperands> space;
    Numbers operands[kOperands];
    C constants[kConstants + 1];

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<kOperands> at = space.offsets(i);
        store_number(operands[0], at.at[0], Kernel::template apply<C>(value<Arguments>(at)...));
    }

    template <class A>
    DIOPI_HD C value(const Offsets<kOperands>& at) const {
        if constexpr (A::kTensor) {
            return load_number<C>(operands[A::kPlace], at.at[A::kPlace]);
        } else {
            return constants[A::kPlace];
        }
    }
};

// Elements of a pack: 16 bytes of the wider type, or fewer where each would be a long row of code.
template <class In, class Out>
constexpr int kPackWidth =
    sizeof(In) == 1 && sizeof(Out) == 1 ? 8
                                        : 16 / static_cast<int>(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));

// The elements that an expression is evaluated at, one by one or in packs of neighbours; along the fastest dimension of
// packs an input steps by one element or stands still.
template <int N>
struct Places {
    uint32_t count;       // of elements
    bool dense;           // one run of each operand; the members below are not read then, which takes time too
    bool still[N];        // the input is one element along the fastest dimension
    SmallSpace<N> space;  // of packs, or of elements
};

template <class Expression>
struct ExpressionTask {
    static constexpr int kOperands = Expression::kOperands;
    static constexpr int kRoom = kOperands > 1 ? kOperands - 1 : 1;

    Expression expression;
    Places<kOperands> places;
};

template <class Expression, class In, class Out>
struct PackedTask : ExpressionTask<Expression> {
    using Base = ExpressionTask<Expression>;
    using Base::expression, Base::kOperands, Base::kRoom, Base::places;
    static constexpr int kWidth = kPackWidth<In, Out>;

    DIOPI_HD void operator()(int64_t i) const {
        const auto index = static_cast<uint32_t>(i);
        Offsets<kOperands> at;
        if (places.dense) {
            DIOPI_UNROLL
            for (int n = 0; n < kOperands; ++n) at.at[n] = static_cast<int64_t>(index) * kWidth;
        } else {
            at = places.space.offsets(index);
        }
        if (places.count - index * kWidth < kWidth) {  // only of a space with one dimension
            DIOPI_KEEP_LOOP
            for (uint32_t k = 0; index * kWidth + k < places.count; ++k) single(at, k);
            return;
        }
        Pack<In, kWidth> inputs[kRoom];
        DIOPI_UNROLL
        for (int n = 1; n < kOperands; ++n) {
            const In* from = expression.input(n) + at.at[n];
            if (!places.dense && places.still[n]) {
                const In value = *from;
                DIOPI_UNROLL
                for (int k = 0; k < kWidth; ++k) inputs[n - 1].at[k] = value;
            } else {
                inputs[n - 1] = load_pack<In, kWidth>(from);
            }
        }
        Pack<Out, kWidth> result;
        DIOPI_UNROLL
        for (int k = 0; k < kWidth; ++k) {
            In values[kRoom];
            DIOPI_UNROLL
            for (int n = 1; n < kOperands; ++n) values[n - 1] = inputs[n - 1].at[k];
            result.at[k] = expression.evaluate(values);
        }
        store_pack<Out, kWidth>(expression.out() + at.at[0], result);
    }

    DIOPI_HD void single(const Offsets<kOperands>& at, uint32_t k) const {
        In values[kRoom];
        for (int n = 1; n < kOperands; ++n)
            values[n - 1] = expression.input(n)[at.at[n] + (!places.dense && places.still[n] ? 0 : k)];
        expression.out()[at.at[0] + k] = expression.evaluate(values);
    }
};

constexpr uint32_t kTogether = 32;  // threads that read neighbouring elements at a time

// Any layouts, a few elements for each thread, so that their loads are under way together.
template <class Expression, class In, class Out>
struct SpacedTask : ExpressionTask<Expression> {
    using Base = ExpressionTask<Expression>;
    using Base::expression, Base::kOperands, Base::kRoom, Base::places;
    static constexpr int kElements = is_float<In> || kOperands <= 2 ? 4 : 1;  // code costs compile time

    DIOPI_HD void operator()(int64_t i) const {
        const auto thread = static_cast<uint32_t>(i);
        const uint32_t first = thread / kTogether * kTogether * kElements + thread % kTogether;
        int64_t target[kElements];
        In values[kElements][kRoom];
        DIOPI_UNROLL
        for (int k = 0; k < kElements; ++k) {
            const uint32_t index = first + k * kTogether;
            if (index >= places.count) continue;
            const Offsets<kOperands> at = places.space.offsets(index);
            target[k] = at.at[0];
            DIOPI_UNROLL
            for (int n = 1; n < kOperands; ++n) values[k][n - 1] = expression.input(n)[at.at[n]];
        }
        DIOPI_UNROLL
        for (int k = 0; k < kElements; ++k) {
            if (first + k * kTogether < places.count) expression.out()[target[k]] = expression.evaluate(values[k]);
        }
    }
};

template <class Task>
diopiError_t launch_task(diopiStreamHandle_t stream, int64_t threads, const void* task) {
    return launch::parallel_for(stream, threads, *static_cast<const Task*>(task));
}

// How an expression of one type is launched. What does not depend on the type is compiled once for all types.
template <int N>
struct ExpressionLaunch {
    int64_t bytes[2];     // of an element: the output's, an input's
    uintptr_t access[2];  // bytes of an access to a pack
    uint32_t width;       // elements of a pack
    int64_t apart;        // elements of a thread that takes them one by one
    diopiError_t (*packed)(diopiStreamHandle_t stream, int64_t threads, const void* task);
    diopiError_t (*spaced)(diopiStreamHandle_t stream, int64_t threads, const void* task);

    // For each position of `space`; the operands and the places are those of the task.
    diopiError_t run(diopiStreamHandle_t stream, const void* task, void** operands, Places<N>& places,
                     const Space<N>& space) const {
        void* whole[N];
        for (int n = 0; n < N; ++n) whole[n] = operands[n];
        return for_small_parts(space, Offsets<N>{}, [&](Space<N> part, const Offsets<N>& offsets) {
            const int last = part.ndim - 1;
            places.count = static_cast<uint32_t>(part.numel);
            places.dense = part.contiguous();
            // Each pack is to be one aligned run of every operand that does not stand still.
            bool packs = last <= 0 || part.sizes[last] % width == 0;
            for (int n = 0; n < N; ++n) {
                operands[n] = static_cast<char*>(whole[n]) + offsets.at[n] * bytes[n > 0];
                places.still[n] = n > 0 && last >= 0 && part.strides[n][last] == 0;
                if (places.still[n]) continue;
                packs = packs && has_packs(part, n, operands[n], width, access[n > 0]);
            }
            if (packs) divide_into_packs(part, width);
            places.space = SmallSpace<N>(part);
            if (packs) return packed(stream, (part.numel + width - 1) / width, task);
            const int64_t tile = kTogether * apart;
            return spaced(stream, (part.numel + tile - 1) / tile * kTogether, task);
        });
    }
};

// Evaluates the expression at each position of `space`.
template <class In, class Out, class Expression, int N>
diopiError_t launch_expression(diopiStreamHandle_t stream, const Expression& expression, const Space<N>& space) {
    using Packed = PackedTask<Expression, In, Out>;
    using Spaced = SpacedTask<Expression, In, Out>;
    constexpr int width = Packed::kWidth;
    static constexpr ExpressionLaunch<N> form{{sizeof(Out), sizeof(In)},
                                              {kAccessBytes<Out, width>, kAccessBytes<In, width>},
                                              width,
                                              Spaced::kElements,
                                              launch_task<Packed>,
                                              launch_task<Spaced>};
    ExpressionTask<Expression> task{expression, {}};
    return form.run(stream, &task, task.expression.operands, task.places, space);
}

}  // namespace diopi::kernels
