// One operation on every tensor of a list: one launch for those of floats that are alike.
#include <diopi/diopirt.h>
#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include "copy/copy.h"
#include "core/scalar.h"
#include "math/math.h"
#include "space/access.h"
#include "optimizer/lists.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// An operation: its results are the first list, what it reads the others; `number` is its scalar.
template <int N, class Formula>
struct ListOp {
    static constexpr int kTensors = N;
    double number;

    DIOPI_HD bool writes(int n) const { return n == 0; }
    DIOPI_HD EveryEntry entry(int) const { return {}; }
    template <class C>
    DIOPI_HD_INLINED void operator()(C (&values)[N], const EveryEntry&) const {
        values[0] = Formula::of(values, C(number));
    }
};

#define DIOPI_LIST_FORMULA(name, lists, expression)              \
    struct name##Formula {                                       \
        template <class C>                                       \
        DIOPI_HD_INLINED static C of(const C (&x)[lists], C s) { \
            static_cast<void>(s);                                \
            return expression;                                   \
        }                                                        \
    };                                                           \
    using name = ListOp<lists, name##Formula>;

DIOPI_LIST_FORMULA(AddList, 3, x[1] + s * x[2])
DIOPI_LIST_FORMULA(MulList, 3, x[1] * x[2])
DIOPI_LIST_FORMULA(DivList, 3, x[1] / x[2])
DIOPI_LIST_FORMULA(Add, 2, x[1] + s)
DIOPI_LIST_FORMULA(Mul, 2, x[1] * s)
DIOPI_LIST_FORMULA(Div, 2, x[1] / s)
DIOPI_LIST_FORMULA(Sqrt, 2, math::sqrt(x[1]))
// From the nearer end, as torch counts.
DIOPI_LIST_FORMULA(Lerp, 3, s < C(0.5) ? x[1] + s * (x[2] - x[1]) : x[2] - (x[2] - x[1]) * (C(1) - s))
DIOPI_LIST_FORMULA(Addcmul, 4, x[1] + s * x[2] * x[3])
DIOPI_LIST_FORMULA(Addcdiv, 4, x[1] + s * x[2] / x[3])
#undef DIOPI_LIST_FORMULA

// Multiplies by a number that lies on the device.
struct MulDevice {
    static constexpr int kTensors = 2;
    TensorView factor;

    struct Known {
        double factor;
        DIOPI_HD bool skips() const { return false; }
    };

    DIOPI_HD bool writes(int n) const { return n == 0; }
    DIOPI_HD Known entry(int) const { return {load_as<double>(factor, 0)}; }
    template <class C>
    DIOPI_HD_INLINED void operator()(C (&values)[2], const Known& known) const {
        values[0] = values[1] * C(known.factor);
    }
};

// Lists by their handles: the results, then what is read, which may be the same.
template <class Op, class Inputs>
diopiError_t run(Context ctx, int64_t count, const Op& op, Tensor* outs, Inputs* inputs,
                 const ConstTensor* second = nullptr, const ConstTensor* third = nullptr) {
    constexpr int N = Op::kTensors;
    return guarded([&] {
        for_each_entry(
            ctx, count, op,
            [&](int64_t k, TensorView(&views)[N]) {
                views[0] = required_view(outs[k], "outs");
                views[1] = required_view(inputs[k], "inputs");
                if constexpr (N > 2) views[2] = required_view(second[k], "the second list");
                if constexpr (N > 3) views[3] = required_view(third[k], "the third list");
            },
            [](const Op&, int, int64_t) {});
    });
}

// The functions that also take whole numbers.

// Whether all tensors are floats; others are done one by one.
template <class Inputs>
bool are_floats(Inputs* inputs, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
        if (inputs[k] == nullptr || !is_float_dtype(view(inputs[k]).dtype)) return false;
    }
    return true;
}

// call(k) for each tensor, until one fails.
template <class Call>
diopiError_t each(int64_t count, Call&& call) {
    for (int64_t k = 0; k < count; ++k) {
        const diopiError_t status = call(k);
        if (status != diopiSuccess) return status;
    }
    return diopiSuccess;
}

template <class Inputs>
diopiError_t add(Context ctx, Tensor* outs, Inputs* inputs, int64_t count, const diopiScalar_t* other) {
    if (are_floats(inputs, count)) return run(ctx, count, Add{scalar_as<double>(other, "other")}, outs, inputs);
    const diopiScalar_t one = integer_scalar(1);
    return each(count, [&](int64_t k) { return ::diopiAddScalar(ctx, outs[k], inputs[k], other, &one); });
}

template <class Inputs>
diopiError_t multiply(Context ctx, Tensor* outs, Inputs* inputs, int64_t count, const diopiScalar_t* other) {
    if (are_floats(inputs, count)) return run(ctx, count, Mul{scalar_as<double>(other, "other")}, outs, inputs);
    return each(count, [&](int64_t k) { return ::diopiMulScalar(ctx, outs[k], inputs[k], other); });
}

template <class Inputs>
diopiError_t multiply(Context ctx, Tensor* outs, Inputs* inputs, int64_t count, ConstTensor other) {
    const TensorView factor = view(other);
    if (are_floats(inputs, count) && factor.defined() && factor.numel == 1) {
        return run(ctx, count, MulDevice{factor}, outs, inputs);
    }
    return each(count, [&](int64_t k) { return ::diopiMul(ctx, outs[k], inputs[k], other); });
}

}  // namespace

diopiError_t diopiForeachAddList(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* others, int64_t nums,
                                 const diopiScalar_t* alpha) {
    return run(ctx, nums, AddList{scalar_or(alpha, 1.0)}, outs, inputs, others);
}

diopiError_t diopiForeachMulList(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* others, int64_t nums) {
    return run(ctx, nums, MulList{}, outs, inputs, others);
}

diopiError_t diopiForeachDivList(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* others, int64_t nums) {
    return run(ctx, nums, DivList{}, outs, inputs, others);
}

diopiError_t diopiForeachDiv(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t nums, const diopiScalar_t* other) {
    return run(ctx, nums, Div{scalar_as<double>(other, "other")}, outs, inputs);
}

diopiError_t diopiForeachSqrt(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t nums) {
    return run(ctx, nums, Sqrt{}, outs, inputs);
}

diopiError_t diopiForeachLerp(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* ends, int64_t nums,
                              const diopiScalar_t* weight) {
    return run(ctx, nums, Lerp{scalar_as<double>(weight, "weight")}, outs, inputs, ends);
}

diopiError_t diopiForeachAddcmul(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* tensors1,
                                 ConstTensor* tensors2, int64_t nums, const diopiScalar_t* value) {
    return run(ctx, nums, Addcmul{scalar_or(value, 1.0)}, outs, inputs, tensors1, tensors2);
}

diopiError_t diopiForeachAddcdiv(Context ctx, Tensor* outs, ConstTensor* inputs, ConstTensor* tensors1,
                                 ConstTensor* tensors2, int64_t nums, const diopiScalar_t* value) {
    return run(ctx, nums, Addcdiv{scalar_or(value, 1.0)}, outs, inputs, tensors1, tensors2);
}

diopiError_t diopiForeachaddScalar(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t inputSize,
                                   const diopiScalar_t* other) {
    return add(ctx, outs, inputs, inputSize, other);
}

diopiError_t diopiForeachaddInpScalar(Context ctx, Tensor* inputs, int64_t inputSize, const diopiScalar_t* other) {
    return add(ctx, inputs, inputs, inputSize, other);
}

diopiError_t diopiForeachmulScalar(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t inputSize,
                                   const diopiScalar_t* other) {
    return multiply(ctx, outs, inputs, inputSize, other);
}

diopiError_t diopiForeachmulInpScalar(Context ctx, Tensor* inputs, int64_t inputSize, const diopiScalar_t* other) {
    return multiply(ctx, inputs, inputs, inputSize, other);
}

diopiError_t diopiForeachmulTensor(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t inputSize,
                                   const ConstTensor other) {
    return multiply(ctx, outs, inputs, inputSize, other);
}

diopiError_t diopiForeachmulInpTensor(Context ctx, Tensor* inputs, int64_t inputSize, const ConstTensor other) {
    return multiply(ctx, inputs, inputs, inputSize, other);
}

diopiError_t diopiForeachnormScalar(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t inputSize,
                                    const diopiScalar_t* ord) {
    const Sizes all{nullptr, 0};
    return each(inputSize, [&](int64_t k) { return ::diopiNorm(ctx, outs[k], inputs[k], ord, all); });
}

}  // namespace impl::portable
