// Elementwise expressions for a device of many threads: each takes a few elements, by as few accesses as it can.
#ifndef DIOPI_KERNELS_CORE_DEVICE_EXPRESSION_H_
#define DIOPI_KERNELS_CORE_DEVICE_EXPRESSION_H_

#include <type_traits>
#include <utility>

#include "device_code.h"
#include "index.h"
#include "launcher.h"
#include "packed.h"
#include "small_space.h"
#include "tensor.h"

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

// load_as and store_as as functions that are called: a switch per operand would be most of the code.
template <class To>
DIOPI_HD_CALLED To load_number(const void* data, diopiDtype_t dtype, int64_t offset) {
    TensorView tensor;
    tensor.data = const_cast<void*>(data);
    tensor.dtype = dtype;
    return load_as<To>(tensor, offset);
}

template <class From>
DIOPI_HD_CALLED void store_number(void* data, diopiDtype_t dtype, int64_t offset, From value) {
    TensorView tensor;
    tensor.data = data;
    tensor.dtype = dtype;
    store_as(tensor, offset, value);
}

// An expression over operands of whatever dtypes, one element per thread: a switch over the dtype per load.
template <class Kernel, class C, class... Arguments>
struct MixedTask {
    static constexpr int kOperands = 1 + (0 + ... + (Arguments::kTensor ? 1 : 0));
    static constexpr int kConstants = static_cast<int>(sizeof...(Arguments)) + 1 - kOperands;

    struct Operand {
        void* data;
        diopiDtype_t dtype;
    };

    Space<kOperands> space;
    Operand operands[kOperands];
    C constants[kConstants + 1];

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<kOperands> at = space.offsets(i);
        store_number(operands[0].data, operands[0].dtype, at.at[0], Kernel::template apply<C>(value<Arguments>(at)...));
    }

    template <class A>
    DIOPI_HD C value(const Offsets<kOperands>& at) const {
        if constexpr (A::kTensor) {
            const Operand& operand = operands[A::kPlace];
            return load_number<C>(operand.data, operand.dtype, at.at[A::kPlace]);
        } else {
            return constants[A::kPlace];
        }
    }
};

// Elements of a pack: 16 bytes of the wider type, or fewer where each would be a long row of code.
template <class In, class Out>
constexpr int kPackWidth =
    sizeof(In) == 1 && sizeof(Out) == 1 ? 8 : 16 / static_cast<int>(sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));

// Packs of neighbouring elements; along the fastest dimension an input steps by one element or stands still.
template <class Expression, class In, class Out>
struct PackedTask {
    static constexpr int kOperands = Expression::kOperands;
    static constexpr int kWidth = kPackWidth<In, Out>;
    static constexpr int kRoom = kOperands > 1 ? kOperands - 1 : 1;

    Expression expression;
    uint32_t count;               // of elements
    bool dense;                   // one run of each operand; the members below are not read then, which takes time too
    bool still[kOperands];        // the input is one element along the fastest dimension
    SmallSpace<kOperands> space;  // of packs

    DIOPI_HD void operator()(int64_t i) const {
        const auto index = static_cast<uint32_t>(i);
        Offsets<kOperands> at;
        if (dense) {
            DIOPI_UNROLL
            for (int n = 0; n < kOperands; ++n) at.at[n] = static_cast<int64_t>(index) * kWidth;
        } else {
            at = space.offsets(index);
        }
        if (count - index * kWidth < kWidth) {  // only of a space with one dimension
            DIOPI_KEEP_LOOP
            for (uint32_t k = 0; index * kWidth + k < count; ++k) single(at, k);
            return;
        }
        Pack<In, kWidth> inputs[kRoom];
        DIOPI_UNROLL
        for (int n = 1; n < kOperands; ++n) {
            const In* from = expression.input(n) + at.at[n];
            if (!dense && still[n]) {
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
            values[n - 1] = expression.input(n)[at.at[n] + (!dense && still[n] ? 0 : k)];
        expression.out()[at.at[0] + k] = expression.evaluate(values);
    }
};

// Any layouts, a few elements for each thread, so that their loads are under way together.
template <class Expression, class In, class Out>
struct SpacedTask {
    static constexpr int kOperands = Expression::kOperands;
    static constexpr int kRoom = kOperands > 1 ? kOperands - 1 : 1;
    static constexpr int kElements = is_float<In> || kOperands <= 2 ? 4 : 1;  // code costs compile time
    static constexpr uint32_t kNeighbours = 32;  // threads that read neighbouring elements at a time

    Expression expression;
    SmallSpace<kOperands> space;

    static int64_t count(int64_t elements) {
        constexpr int64_t tile = int64_t{kElements} * kNeighbours;
        return (elements + tile - 1) / tile * kNeighbours;
    }

    DIOPI_HD void operator()(int64_t i) const {
        const auto thread = static_cast<uint32_t>(i);
        const uint32_t first = thread / kNeighbours * kNeighbours * kElements + thread % kNeighbours;
        int64_t target[kElements];
        In values[kElements][kRoom];
        DIOPI_UNROLL
        for (int k = 0; k < kElements; ++k) {
            const uint32_t index = first + k * kNeighbours;
            if (index >= space.numel) continue;
            const Offsets<kOperands> at = space.offsets(index);
            target[k] = at.at[0];
            DIOPI_UNROLL
            for (int n = 1; n < kOperands; ++n) values[k][n - 1] = expression.input(n)[at.at[n]];
        }
        DIOPI_UNROLL
        for (int k = 0; k < kElements; ++k) {
            if (first + k * kNeighbours < space.numel) expression.out()[target[k]] = expression.evaluate(values[k]);
        }
    }
};

// True when the elements fall into packs, each of which is one aligned run of every operand that does not stand still.
template <class In, class Out, int N>
bool packs(const Space<N>& space, void* const (&operands)[N]) {
    constexpr int width = kPackWidth<In, Out>;
    const int last = space.ndim - 1;
    if (last > 0 && space.sizes[last] % width != 0) return false;
    for (int n = 0; n < N; ++n) {
        if (n > 0 && last >= 0 && space.strides[n][last] == 0) continue;
        const uintptr_t access = n == 0 ? kAccessBytes<Out, width> : kAccessBytes<In, width>;
        if (reinterpret_cast<uintptr_t>(operands[n]) % access != 0) return false;
        for (int d = 0; d < last; ++d) {
            if (space.strides[n][d] % width != 0) return false;
        }
        if (last >= 0 && space.strides[n][last] != 1) return false;
    }
    return true;
}

template <class Expression, class In, class Out, int N>
diopiError_t launch_packs(diopiStreamHandle_t stream, const Expression& expression, Space<N> space) {
    using Task = PackedTask<Expression, In, Out>;
    Task task{expression, static_cast<uint32_t>(space.numel), space.contiguous(), {}, {}};
    space.numel = (space.numel + Task::kWidth - 1) / Task::kWidth;
    if (space.ndim > 0) {
        const int last = space.ndim - 1;
        space.sizes[last] = (space.sizes[last] + Task::kWidth - 1) / Task::kWidth;
        for (int n = 0; n < N; ++n) {
            task.still[n] = n > 0 && space.strides[n][last] == 0;
            space.strides[n][last] *= Task::kWidth;
        }
    }
    task.space = SmallSpace<N>(space);
    return launch::parallel_for(stream, space.numel, task);
}

// Evaluates the expression at each position of `space`.
template <class In, class Out, class Expression, int N>
diopiError_t launch_expression(diopiStreamHandle_t stream, const Expression& expression, const Space<N>& space) {
    return for_small_parts(space, Offsets<N>{}, [&](const Space<N>& part, const Offsets<N>& offsets) {
        Expression moved = expression;
        moved.operands[0] = expression.out() + offsets.at[0];
        for (int n = 1; n < N; ++n) moved.operands[n] = const_cast<In*>(expression.input(n) + offsets.at[n]);
        if (packs<In, Out>(part, moved.operands)) return launch_packs<Expression, In, Out>(stream, moved, part);
        using Spaced = SpacedTask<Expression, In, Out>;
        return launch::parallel_for(stream, Spaced::count(part.numel), Spaced{moved, SmallSpace<N>(part)});
    });
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_DEVICE_EXPRESSION_H_
