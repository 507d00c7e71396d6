// Gradients of functions that pick elements: each goes back to where its element was, and those that meet add up.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/masked_scatter.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/zeros.h>
#include <diopi/functions.h>

#include "aten/call.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiIndexSelectBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                      diopiConstTensorHandle_t grad, diopiSize_t input_sizes, int64_t dim,
                                      diopiConstTensorHandle_t index) {
    return guarded([&] {
        const at::Tensor source = wide(grad);
        write(grad_input, at::index_add(at::zeros(ints(input_sizes), source.options()), dim, tensor(index), source));
    });
}

diopiError_t diopiGatherBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, int64_t dim,
                                 diopiConstTensorHandle_t index) {
    return guarded([&] {
        const at::Tensor source = wide(grad_output);
        const at::Tensor none = at::zeros(tensor(input).sizes(), source.options());
        write(grad_input, at::scatter_add(none, dim, tensor(index).to(at::kLong), source));
    });
}

diopiError_t diopiIndexBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                diopiTensorHandle_t zeros_like_input, diopiConstTensorHandle_t* indices, int64_t nums,
                                diopiConstTensorHandle_t grad_output) {
    return guarded([&] {
        write(grad_input, at::index_put(wide(zeros_like_input), maybe_tensors(indices, nums), wide(grad_output), true));
    });
}

diopiError_t diopiMaskedSelectBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                       diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                       diopiConstTensorHandle_t mask) {
    return guarded([&] {
        const at::Tensor source = wide(grad_output);
        const at::Tensor chosen = tensor(mask);
        const at::DimVector sizes = at::infer_size_dimvector(tensor(input).sizes(), chosen.sizes());
        const at::Tensor spread = at::masked_scatter(at::zeros(sizes, source.options()), chosen, source);
        write(grad_input, spread.sum_to_size(tensor(input).sizes()));
    });
}

}  // namespace impl::torch
