// The gradient of dropout: what it kept, scaled, with the mask that it drew.
#include <ATen/core/Tensor.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>

#include <diopi/functions.h>

#include "wrapper/wrapper.h"

namespace dipu {
namespace {

namespace vendor {
constinit VendorFunction<decltype(::diopiMul)> diopiMul{{"diopiMul"}};
constinit VendorFunction<decltype(::diopiMulInpScalar)> diopiMulInpScalar{{"diopiMulInpScalar"}};
}  // namespace vendor

constinit OperatorControl native_dropout_backward_control{"native_dropout_backward"};
at::Tensor native_dropout_backward(const at::Tensor& grad_output, const at::Tensor& mask, double scale) {
    if (intercepted(native_dropout_backward_control)) {
        return at::_ops::native_dropout_backward::redispatch(kInterposer, grad_output, mask, scale);
    }
    if (!grad_output.is_floating_point()) {
        return at::_ops::native_dropout_backward::redispatch(kFallback, grad_output, mask, scale);
    }
    at::Tensor kept = at::_ops::mul_Tensor::call(grad_output, mask);
    at::_ops::mul__Scalar::call(kept, scale);
    return kept;
}

}  // namespace

void register_dropout(Registrar& registrar) {
    registrar.add(native_dropout_backward_control, &native_dropout_backward,
                  {&vendor::diopiMul, &vendor::diopiMulInpScalar});
}

}  // namespace dipu
