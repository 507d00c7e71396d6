// One operation on every tensor of a list: a call of the operator for each, whoever implements it.
#include <diopi/diopirt.h>
#include <diopi/functions.h>

#include "core/handles.h"
#include "core/scalar.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

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
    const diopiScalar_t one = integer_scalar(1);
    return each(count, [&](int64_t k) { return ::diopiAddScalar(ctx, outs[k], inputs[k], other, &one); });
}

template <class Inputs>
diopiError_t multiply(Context ctx, Tensor* outs, Inputs* inputs, int64_t count, const diopiScalar_t* other) {
    return each(count, [&](int64_t k) { return ::diopiMulScalar(ctx, outs[k], inputs[k], other); });
}

template <class Inputs>
diopiError_t multiply(Context ctx, Tensor* outs, Inputs* inputs, int64_t count, ConstTensor other) {
    return each(count, [&](int64_t k) { return ::diopiMul(ctx, outs[k], inputs[k], other); });
}

}  // namespace

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
    const diopiSize_t all{nullptr, 0};
    return each(inputSize, [&](int64_t k) { return ::diopiNorm(ctx, outs[k], inputs[k], ord, all); });
}

}  // namespace impl::portable
