// Pooling that is told by `mode` and `adaptive` what to do.
#include <diopi/diopirt.h>

#include <cstring>

#include "core/pooling.h"
#include "core/workspace.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

bool is_maximum(const char* mode) {
    require(mode != nullptr, "the string 'mode' is null");
    const bool greatest = strcmp(mode, "max") == 0;
    require(greatest || strcmp(mode, "avg") == 0, "'mode' is '%s', expected 'max' or 'avg'", mode);
    return greatest;
}

Areas areas_of(const TensorView& input, const TensorView& output, int rank, bool adaptive, const Sliding& lists) {
    return adaptive ? adaptive_areas(input, output, rank) : sliding_areas(input, output, rank, lists);
}

void pooled(Context ctx, int rank, Tensor out, ConstTensor input, const char* mode, const Sliding& lists,
            bool exclusive, bool adaptive) {
    const TensorView result = required_view(out, "out"), source = required_view(input, "input");
    const Areas areas = areas_of(source, result, rank, adaptive, lists);
    if (is_maximum(mode)) {
        pool_maximum(ctx, result, undefined_view(), source, areas);
    } else {
        pool_average(ctx, result, source, areas, {0, !exclusive && !adaptive});
    }
}

// Where the maxima stand, for a gradient that was not told.
TensorView found_again(Context ctx, const TensorView& input, const TensorView& like, const Areas& areas) {
    const TensorView indices = temporary_like(ctx, like, diopi_dtype_int64);
    pool_maximum(ctx, temporary_like(ctx, like, input.dtype), indices, input, areas);
    return indices;
}

void pooled_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                     const char* mode, const Sliding& lists, bool exclusive, bool adaptive, ConstTensor indices) {
    const TensorView result = required_view(grad_input, "grad_input");
    const TensorView grads = required_view(grad_output, "grad_output");
    const Areas areas = areas_of(result, grads, rank, adaptive, lists);
    if (!is_maximum(mode)) {
        pool_average_backward(ctx, result, grads, areas, {0, !exclusive && !adaptive});
        return;
    }
    const TensorView places =
        indices != nullptr ? view(indices) : found_again(ctx, required_view(input, "input"), grads, areas);
    pool_maximum_backward(ctx, result, grads, places, areas);
}

}  // namespace

diopiError_t diopiPool1d(Context ctx, Tensor out, ConstTensor input, const char* mode, diopiSize_t ksize,
                         diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation, bool, bool exclusive,
                         bool adaptive, diopiSize_t) {
    return guarded([&] { pooled(ctx, 1, out, input, mode, {ksize, stride, padding, dilation}, exclusive, adaptive); });
}

diopiError_t diopiPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                 const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                                 diopiSize_t dilation, bool, bool exclusive, bool adaptive, ConstTensor indices) {
    return guarded([&] {
        pooled_backward(ctx, 1, grad_input, grad_output, input, mode, {ksize, stride, padding, dilation}, exclusive,
                        adaptive, indices);
    });
}

diopiError_t diopiPool2d(Context ctx, Tensor out, ConstTensor input, const char* mode, diopiSize_t ksize,
                         diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation, bool, bool exclusive,
                         bool adaptive, diopiSize_t) {
    return guarded([&] { pooled(ctx, 2, out, input, mode, {ksize, stride, padding, dilation}, exclusive, adaptive); });
}

diopiError_t diopiPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                 const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                                 diopiSize_t dilation, bool, bool exclusive, bool adaptive, ConstTensor indices) {
    return guarded([&] {
        pooled_backward(ctx, 2, grad_input, grad_output, input, mode, {ksize, stride, padding, dilation}, exclusive,
                        adaptive, indices);
    });
}

diopiError_t diopiPool3d(Context ctx, Tensor out, ConstTensor input, const char* mode, diopiSize_t ksize,
                         diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation, bool, bool exclusive,
                         bool adaptive, diopiSize_t) {
    return guarded([&] { pooled(ctx, 3, out, input, mode, {ksize, stride, padding, dilation}, exclusive, adaptive); });
}

diopiError_t diopiPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                 const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                                 diopiSize_t dilation, bool, bool exclusive, bool adaptive, ConstTensor indices) {
    return guarded([&] {
        pooled_backward(ctx, 3, grad_input, grad_output, input, mode, {ksize, stride, padding, dilation}, exclusive,
                        adaptive, indices);
    });
}


}  // namespace impl::portable
