// Views of tensors, copied to where the caller wants them.
#include <ATen/ops/meshgrid.h>
#include <ATen/ops/split_with_sizes.h>
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiSplitWithSizes(diopiContextHandle_t, diopiTensorHandle_t* outs, int64_t num_outs,
                                 diopiConstTensorHandle_t input, const diopiSize_t splitSizes, int64_t dim) {
    return guarded([&] { write(outs, num_outs, at::split_with_sizes(tensor(input), ints(splitSizes), dim)); });
}

diopiError_t diopiExpand(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return guarded([&] { write(out, tensor(input).expand(tensor(out).sizes())); });
}

diopiError_t diopiUnfold(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim,
                         int64_t size, int64_t step) {
    return guarded([&] { write(out, tensor(input).unfold(dim, size, step)); });
}

diopiError_t diopiMeshGrid(diopiContextHandle_t, diopiTensorHandle_t* outs, diopiConstTensorHandle_t* inputs,
                           int64_t inputsNum) {
    return guarded([&] { write(outs, inputsNum, at::meshgrid(tensors(inputs, inputsNum), "ij")); });
}

}  // namespace impl::torch
