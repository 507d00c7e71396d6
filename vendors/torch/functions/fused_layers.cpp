// Whole layers of a language model over ATen, which needs no workspace for them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/silu.h>
#include <diopi/functions_lmdeploy.h>

#include "aten/call.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

at::Tensor rows_normalized(const at::Tensor& rows, const at::Tensor& scale, double eps) {
    return rows * (rows.square().mean({-1}, true) + eps).rsqrt() * scale;
}

}  // namespace

diopiError_t diopiFusedSiluFfnInp(diopiContextHandle_t, diopiTensorHandle_t inoutput, diopiConstTensorHandle_t weight1,
                                  diopiConstTensorHandle_t weight2, diopiConstTensorHandle_t weight3,
                                  diopiTensorHandle_t, int64_t* workspace_size, int64_t) {
    return guarded([&] {
        if (workspace_size != nullptr && *workspace_size < 0) {
            *workspace_size = 0;
            return;
        }
        const at::Tensor x = tensor(inoutput);
        const at::Tensor gated = at::silu(at::matmul(x, tensor(weight1))) * at::matmul(x, tensor(weight3));
        write(inoutput, at::matmul(gated, tensor(weight2)));
    });
}

diopiError_t diopiRootMeanSquareNormInp(diopiContextHandle_t, diopiTensorHandle_t inoutput,
                                        diopiConstTensorHandle_t scale, float eps) {
    return guarded([&] { write(inoutput, rows_normalized(wide(tensor(inoutput)), tensor(scale), eps)); });
}

diopiError_t diopiFusedAddRootMeanSquareNormInp(diopiContextHandle_t, diopiTensorHandle_t inoutput,
                                                diopiTensorHandle_t residual, diopiConstTensorHandle_t bias,
                                                diopiConstTensorHandle_t scale, float eps) {
    return guarded([&] {
        at::Tensor total = wide(tensor(residual)) + tensor(inoutput);
        if (bias != nullptr) total = total + tensor(bias);
        write(inoutput, rows_normalized(total, tensor(scale), eps));
        write(residual, total);
    });
}

}  // namespace impl::torch
