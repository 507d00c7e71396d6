// Average pooling with windows that slide.
#include <diopi/diopirt.h>

#include "pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

diopiError_t diopiAvgPool1d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            bool, bool count_include_pad) {
    return pool_average(ctx, 1, out, input, {kernel_size, stride, padding, {}}, count_include_pad);
}

diopiError_t diopiAvgPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    Sizes kernel_size, Sizes stride, Sizes padding, bool, bool count_include_pad) {
    return pool_average_backward(ctx, 1, grad_input, grad_output, {kernel_size, stride, padding, {}},
                                 count_include_pad);
}

diopiError_t diopiAvgPool2d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            bool, bool count_include_pad, const int64_t* divisor_override) {
    return pool_average(ctx, 2, out, input, {kernel_size, stride, padding, {}}, count_include_pad, divisor_override);
}

diopiError_t diopiAvgPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    Sizes kernel_size, Sizes stride, Sizes padding, bool, bool count_include_pad,
                                    const int64_t* divisor_override) {
    return pool_average_backward(ctx, 2, grad_input, grad_output, {kernel_size, stride, padding, {}}, count_include_pad,
                                 divisor_override);
}

diopiError_t diopiAvgPool3d(Context ctx, Tensor out, ConstTensor input, Sizes kernel_size, Sizes stride, Sizes padding,
                            bool, bool count_include_pad, const int64_t* divisor_override) {
    return pool_average(ctx, 3, out, input, {kernel_size, stride, padding, {}}, count_include_pad, divisor_override);
}

diopiError_t diopiAvgPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    Sizes kernel_size, Sizes stride, Sizes padding, bool, bool count_include_pad,
                                    const int64_t* divisor_override) {
    return pool_average_backward(ctx, 3, grad_input, grad_output, {kernel_size, stride, padding, {}}, count_include_pad,
                                 divisor_override);
}

}  // namespace impl::portable
