// Floor division is division that rounds down, whose operator has torch's type rules: integers stay integers.
#include <ATen/core/Tensor.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>

#include <diopi/functions.h>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiDiv)> diopiDiv{{"diopiDiv"}};
constinit VendorFunction<decltype(::diopiDivInp)> diopiDivInp{{"diopiDivInp"}};
}  // namespace vendor

constinit OperatorControl floor_divide_control{"floor_divide"};
at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
    if (intercepted(floor_divide_control)) {
        return at::_ops::floor_divide::redispatch(kInterposer, self, other);
    }
    return at::_ops::div_Tensor_mode::call(self, other, "floor");
}

constinit OperatorControl floor_divide_out_control{"floor_divide.out"};
at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
    if (intercepted(floor_divide_out_control)) {
        return at::_ops::floor_divide_out::redispatch(kInterposer, self, other, out);
    }
    return at::_ops::div_out_mode::call(self, other, "floor", out);
}

constinit OperatorControl floor_divide__Tensor_control{"floor_divide_.Tensor"};
at::Tensor& floor_divide__Tensor(at::Tensor& self, const at::Tensor& other) {
    if (intercepted(floor_divide__Tensor_control)) {
        return at::_ops::floor_divide__Tensor::redispatch(kInterposer, self, other);
    }
    return at::_ops::div__Tensor_mode::call(self, other, "floor");
}

}  // namespace

void register_division(Registrar& registrar) {
    registrar.add(floor_divide_control, &floor_divide, {&vendor::diopiDiv});
    registrar.add(floor_divide_out_control, &floor_divide_out, {&vendor::diopiDiv});
    registrar.add(floor_divide__Tensor_control, &floor_divide__Tensor, {&vendor::diopiDivInp});
}

}  // namespace dipu
