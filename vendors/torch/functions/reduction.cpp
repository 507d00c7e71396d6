// Gradients of norms and running sums.
#include <ATen/ops/norm.h>
#include <diopi/functions.h>

#include "aten/call.h"
#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

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
