// Products, and gradients of norms and running sums.
#include <ATen/ops/norm.h>
#include <ATen/ops/prod.h>
#include <diopi/functions.h>

#include "aten/call.h"
#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

// ATen rounds the products of halves at each step.
diopiError_t diopiProd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const int64_t* dim) {
    return guarded([&] {
        at::Tensor factors = raised(input, out);
        if (c10::isReducedFloatingType(factors.scalar_type())) factors = factors.to(at::kFloat);
        const at::ScalarType type = factors.scalar_type();
        write(out, dim == nullptr ? at::prod(factors, type) : at::prod(factors, *dim, same_rank(out, input), type));
    });
}

diopiError_t diopiCumsumBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, int64_t dim) {
    return guarded([&] {
        const at::Tensor grad = wide(grad_output);
        write(grad_input, grad.dim() == 0 ? grad : grad.flip(dim).cumsum(dim).flip(dim));
    });
}

diopiError_t diopiNormBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t self,
                               diopiConstTensorHandle_t, diopiSize_t dim, const diopiScalar_t* p) {
    return guarded([&] {
        const bool keepdim = same_rank(self, grad_output);
        write(grad_input, gradients({wide(self)}, {wide(grad_output)}, [&](const Tensors& in) {
                  return Tensors{at::norm(in[0], number(p), ints(dim), keepdim)};
              })[0]);
    });
}

}  // namespace impl::torch
