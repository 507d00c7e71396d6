// The gradients of factorizations and solvers, which PyTorch derives.
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/triangular_solve.h>
#include <diopi/functions.h>

#include "aten/call.h"
#include "aten/gradients.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiCholeskyBackward(diopiContextHandle_t, diopiTensorHandle_t grad_mat,
                                   diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t L, bool upper) {
    return guarded([&] {
        const at::Tensor factor = tensor(L);
        const at::Tensor mat = upper ? factor.mT().matmul(factor) : factor.matmul(factor.mT());
        write(grad_mat, gradients({mat}, {tensor(grad_output)},
                                  [&](const Tensors& in) { return Tensors{at::linalg_cholesky(in[0], upper)}; })[0]);
    });
}

diopiError_t diopiTriangularSolveBackward(diopiContextHandle_t, diopiTensorHandle_t grad_b,
                                          diopiTensorHandle_t grad_mat, diopiConstTensorHandle_t grad_x,
                                          diopiConstTensorHandle_t grad_cloned_mat, diopiConstTensorHandle_t,
                                          diopiConstTensorHandle_t b, diopiConstTensorHandle_t mat, bool upper,
                                          bool transpose, bool unitriangular) {
    return guarded([&] {
        const Tensors incoming{tensor(grad_x), maybe_tensor(grad_cloned_mat).value_or(at::Tensor())};
        const Tensors grads = gradients({tensor(b), tensor(mat)}, incoming, [&](const Tensors& in) {
            auto [x, cloned] = at::triangular_solve(in[0], in[1], upper, transpose, unitriangular);
            return Tensors{x, cloned};
        });
        write(grad_b, grads[0]);
        write(grad_mat, grads[1]);
    });
}

}  // namespace impl::torch
