// The gradient of sorting, and lists without repeats, whose lengths the data decide.
#include <ATen/ops/_unique2.h>
#include <ATen/ops/unique_dim.h>
#include <ATen/ops/value_selecting_reduction_backward.h>
#include <diopi/functions.h>

#include <tuple>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiSortBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, int64_t dim, diopiConstTensorHandle_t indices,
                               diopiSize_t sizes, bool keepdim) {
    return guarded([&] {
        write(grad_input,
              at::value_selecting_reduction_backward(tensor(grad_output), dim, tensor(indices), ints(sizes), keepdim));
    });
}

// By hand because `indices` and `counts` are worked out, and given, only when they are asked for.
diopiError_t diopiUnique(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool sorted, bool return_counts, diopiTensorHandle_t indices,
                         diopiTensorHandle_t* counts) {
    return guarded([&] {
        const bool inverse = indices != nullptr;
        const auto found = dim == nullptr ? at::_unique2(tensor(input), sorted, inverse, return_counts)
                                          : at::unique_dim(tensor(input), *dim, sorted, inverse, return_counts);
        allocate(ctx, out, std::get<0>(found));
        if (inverse) write(indices, std::get<1>(found));
        if (return_counts) allocate(ctx, counts, std::get<2>(found));
    });
}

}  // namespace impl::torch
