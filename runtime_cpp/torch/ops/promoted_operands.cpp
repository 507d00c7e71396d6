// Two operators that torch has no meta function for, with the promotion and the checks of those that have one.
#include <ATen/core/Tensor.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sub_ops.h>

#include <diopi/functions.h>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiRemainder)> diopiRemainder{{"diopiRemainder"}};
constinit VendorFunction<decltype(::diopiSub)> diopiSub{{"diopiSub"}};
}  // namespace vendor

// The difference the other way round, which refuses bools.
constinit OperatorControl rsub_control{"rsub.Tensor"};
at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
    if (intercepted(rsub_control)) {
        return at::_ops::rsub_Tensor::redispatch(kInterposer, self, other, alpha);
    }
    return at::_ops::sub_Tensor::call(other, self, alpha);
}

// The function keeps the dtype of its divisors, so they take on the number's category first: 2.5 % integers are floats.
constinit OperatorControl remainder_control{"remainder.Scalar_Tensor"};
at::Tensor remainder(const at::Scalar& self, const at::Tensor& other) {
    if (intercepted(remainder_control)) {
        return at::_ops::remainder_Scalar_Tensor::redispatch(kInterposer, self, other);
    }
    const c10::ScalarType common = common_type(self, other);
    at::Tensor out = new_preserved(other, common);
    if (out.numel() == 0) {
        return out;
    }
    const ScalarArg input_arg(self);
    if (supported(input_arg)) {
        Context context(out);
        const Out out_arg(out, common);
        const In other_arg(other, common, out.device());
        if (ran(vendor::diopiRemainder(context, out_arg, input_arg, other_arg), "diopiRemainder") && out_arg.flush()) {
            return out;
        }
    }
    return at::_ops::remainder_Scalar_Tensor::redispatch(kFallback, self, other);
}

}  // namespace

void register_promoted_operands(Registrar& registrar) {
    registrar.add(rsub_control, &rsub, {&vendor::diopiSub});
    registrar.add(remainder_control, &remainder, {&vendor::diopiRemainder});
}

}  // namespace dipu
