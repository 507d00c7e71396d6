// Pooling whose kind comes from `mode` and `adaptive`.
#include <diopi/diopirt.h>

#include <cstring>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

bool is_maximum(const char* mode) {
    require(mode != nullptr, "the string 'mode' is null");
    const bool greatest = strcmp(mode, "max") == 0;
    require(greatest || strcmp(mode, "avg") == 0, "'mode' is '%s', expected 'max' or 'avg'", mode);
    return greatest;
}

diopiError_t pooled(Context ctx, int rank, Tensor out, ConstTensor input, const char* mode, const Sliding& lists,
                    bool exclusive) {
    return guarded([&] {
        passed_on(is_maximum(mode) ? pool_maximum(ctx, rank, out, nullptr, input, lists)
                                   : pool_average(ctx, rank, out, input, lists, !exclusive && !lists.adaptive));
    });
}

diopiError_t pooled_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                             const char* mode, const Sliding& lists, bool exclusive, ConstTensor indices) {
    return guarded([&] {
        passed_on(is_maximum(mode) ? pool_maximum_backward(ctx, rank, grad_input, grad_output, input, indices, lists)
                                   : pool_average_backward(ctx, rank, grad_input, grad_output, lists,
                                                           !exclusive && !lists.adaptive));
    });
}

}  // namespace

// The functions of one rank.
#define DIOPI_POOL(rank)                                                                                              \
    diopiError_t diopiPool##rank##d(Context ctx, Tensor out, ConstTensor input, const char* mode, Sizes ksize,        \
                                    Sizes stride, Sizes padding, Sizes dilation, bool, bool exclusive, bool adaptive, \
                                    Sizes) {                                                                          \
        return pooled(ctx, rank, out, input, mode, {ksize, stride, padding, dilation, adaptive}, exclusive);          \
    }                                                                                                                 \
    diopiError_t diopiPool##rank##dBackward(                                                                          \
        Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input, const char* mode, Sizes ksize,    \
        Sizes stride, Sizes padding, Sizes dilation, bool, bool exclusive, bool adaptive, ConstTensor indices) {      \
        return pooled_backward(ctx, rank, grad_input, grad_output, input, mode,                                       \
                               {ksize, stride, padding, dilation, adaptive}, exclusive, indices);                     \
    }

DIOPI_POOL(1)
DIOPI_POOL(2)
DIOPI_POOL(3)

#undef DIOPI_POOL

}  // namespace impl::portable
