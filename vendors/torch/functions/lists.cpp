// Elementwise operations on lists of tensors, entry by entry.
#include <ATen/TensorOperators.h>
#include <diopi/functions_ext.h>

#include "aten/call.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

using List = diopiConstTensorHandle_t*;

// outs[i] = formula(entry i of each list)
template <class Formula, class... Lists>
diopiError_t each(diopiTensorHandle_t* outs, int64_t nums, const Formula& formula, Lists... lists) {
    return guarded([&] {
        for (int64_t i = 0; i < nums; ++i) write(outs[i], formula(wide(lists[i])...));
    });
}

}  // namespace

diopiError_t diopiForeachAddList(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List others,
                                 int64_t nums, const diopiScalar_t* alpha) {
    const auto sum = [&](const at::Tensor& x, const at::Tensor& y) { return x + number(alpha) * y; };
    return each(outs, nums, sum, inputs, others);
}

diopiError_t diopiForeachMulList(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List others,
                                 int64_t nums) {
    return each(outs, nums, [](const at::Tensor& x, const at::Tensor& y) { return x * y; }, inputs, others);
}

diopiError_t diopiForeachDivList(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List others,
                                 int64_t nums) {
    return each(outs, nums, [](const at::Tensor& x, const at::Tensor& y) { return x / y; }, inputs, others);
}

diopiError_t diopiForeachDiv(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, int64_t nums,
                             const diopiScalar_t* other) {
    return each(outs, nums, [&](const at::Tensor& x) { return x / number(other); }, inputs);
}

diopiError_t diopiForeachSqrt(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, int64_t nums) {
    return each(outs, nums, [](const at::Tensor& x) { return x.sqrt(); }, inputs);
}

diopiError_t diopiForeachLerp(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List ends, int64_t nums,
                              const diopiScalar_t* weight) {
    const auto between = [&](const at::Tensor& x, const at::Tensor& y) { return x.lerp(y, number(weight)); };
    return each(outs, nums, between, inputs, ends);
}

diopiError_t diopiForeachAddcmul(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List tensors1,
                                 List tensors2, int64_t nums, const diopiScalar_t* value) {
    const auto moved = [&](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
        return x + number(value) * y * z;
    };
    return each(outs, nums, moved, inputs, tensors1, tensors2);
}

diopiError_t diopiForeachAddcdiv(diopiContextHandle_t, diopiTensorHandle_t* outs, List inputs, List tensors1,
                                 List tensors2, int64_t nums, const diopiScalar_t* value) {
    const auto moved = [&](const at::Tensor& x, const at::Tensor& y, const at::Tensor& z) {
        return x + number(value) * y / z;
    };
    return each(outs, nums, moved, inputs, tensors1, tensors2);
}

}  // namespace impl::torch
