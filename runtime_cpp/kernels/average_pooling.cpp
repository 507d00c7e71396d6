// Average pooling with windows that slide.
#include <diopi/diopirt.h>

#include "core/pooling.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

Divisor divisor_of(bool count_include_pad, const int64_t* divisor_override) {
    require(divisor_override == nullptr || *divisor_override != 0, "divisor_override is zero");
    return {divisor_override == nullptr ? 0 : *divisor_override, count_include_pad};
}

void averaged(Context ctx, int rank, Tensor out, ConstTensor input, const Sliding& lists, const Divisor& divisor) {
    const TensorView result = required_view(out, "out"), source = required_view(input, "input");
    pool_average(ctx, result, source, sliding_areas(source, result, rank, lists), divisor);
}

void averaged_backward(Context ctx, int rank, Tensor grad_input, ConstTensor grad_output, const Sliding& lists,
                       const Divisor& divisor) {
    const TensorView result = required_view(grad_input, "grad_input");
    const TensorView grads = required_view(grad_output, "grad_output");
    pool_average_backward(ctx, result, grads, sliding_areas(result, grads, rank, lists), divisor);
}

}  // namespace

diopiError_t diopiAvgPool1d(Context ctx, Tensor out, ConstTensor input, diopiSize_t kernel_size, diopiSize_t stride,
                            diopiSize_t padding, bool, bool count_include_pad) {
    return guarded([&] {
        averaged(ctx, 1, out, input, {kernel_size, stride, padding, {}}, divisor_of(count_include_pad, nullptr));
    });
}

diopiError_t diopiAvgPool1dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool,
                                    bool count_include_pad) {
    return guarded([&] {
        averaged_backward(ctx, 1, grad_input, grad_output, {kernel_size, stride, padding, {}},
                          divisor_of(count_include_pad, nullptr));
    });
}

diopiError_t diopiAvgPool2d(Context ctx, Tensor out, ConstTensor input, diopiSize_t kernel_size, diopiSize_t stride,
                            diopiSize_t padding, bool, bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        averaged(ctx, 2, out, input, {kernel_size, stride, padding, {}},
                 divisor_of(count_include_pad, divisor_override));
    });
}

diopiError_t diopiAvgPool2dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool,
                                    bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        averaged_backward(ctx, 2, grad_input, grad_output, {kernel_size, stride, padding, {}},
                          divisor_of(count_include_pad, divisor_override));
    });
}

diopiError_t diopiAvgPool3d(Context ctx, Tensor out, ConstTensor input, diopiSize_t kernel_size, diopiSize_t stride,
                            diopiSize_t padding, bool, bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        averaged(ctx, 3, out, input, {kernel_size, stride, padding, {}},
                 divisor_of(count_include_pad, divisor_override));
    });
}

diopiError_t diopiAvgPool3dBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool,
                                    bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        averaged_backward(ctx, 3, grad_input, grad_output, {kernel_size, stride, padding, {}},
                          divisor_of(count_include_pad, divisor_override));
    });
}


}  // namespace impl::portable
