// Convolutions: ATen has one operator for all of them, which is told the number of dimensions by its lists.
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <diopi/functions.h>

#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

struct Windows {
    at::IntArrayRef stride;
    at::IntArrayRef padding;
    at::IntArrayRef dilation;
    at::IntArrayRef output_padding;
    bool transposed;
    int64_t groups;
};

// A convolution that is not transposed pads nothing on the side of its output.
constexpr int64_t kNone[] = {0, 0, 0};

Windows plain(diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    const auto none = at::IntArrayRef(kNone, ints(stride).size());
    return {ints(stride), ints(padding), ints(dilation), none, false, groups};
}

Windows transposed(diopiSize_t stride, diopiSize_t padding, diopiSize_t output_padding, int64_t groups,
                   diopiSize_t dilation) {
    return {ints(stride), ints(padding), ints(dilation), ints(output_padding), true, groups};
}

diopiError_t forward(diopiTensorHandle_t out, diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
                     diopiConstTensorHandle_t bias, const Windows& w) {
    return guarded([&] {
        write(out, at::convolution(wide(input), wide(weight), maybe_wide(bias), w.stride, w.padding, w.dilation,
                                   w.transposed, w.output_padding, w.groups));
    });
}

struct Gradients {
    diopiTensorHandle_t input;
    diopiTensorHandle_t weight;
    diopiTensorHandle_t bias;
};

diopiError_t backward(const Gradients& grads, diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t weight, const diopiSize_t* bias_sizes, const Windows& w) {
    return guarded([&] {
        const std::array<bool, 3> wanted{grads.input != nullptr, grads.weight != nullptr, grads.bias != nullptr};
        const auto [of_input, of_weight, of_bias] =
            at::convolution_backward(wide(grad_output), wide(input), wide(weight), maybe_ints(bias_sizes), w.stride,
                                     w.padding, w.dilation, w.transposed, w.output_padding, w.groups, wanted);
        write(grads.input, of_input);
        write(grads.weight, of_weight);
        write(grads.bias, of_bias);
    });
}

}  // namespace

diopiError_t diopiConvolution2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return forward(out, input, weight, bias, plain(stride, padding, dilation, groups));
}

diopiError_t diopiConvolution2dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                        diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t weight, diopiSize_t* bias_sizes, diopiSize_t stride,
                                        diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return backward({grad_input, grad_weight, grad_bias}, grad_output, input, weight, bias_sizes,
                    plain(stride, padding, dilation, groups));
}

diopiError_t diopiConvolution3d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return forward(out, input, weight, bias, plain(stride, padding, dilation, groups));
}

diopiError_t diopiConvolution3dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                        diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t weight, diopiSize_t* bias_sizes, diopiSize_t stride,
                                        diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return backward({grad_input, grad_weight, grad_bias}, grad_output, input, weight, bias_sizes,
                    plain(stride, padding, dilation, groups));
}

diopiError_t diopiConvTranspose2dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                          diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                          diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                          diopiConstTensorHandle_t weight, diopiSize_t* bias_sizes, diopiSize_t stride,
                                          diopiSize_t padding, diopiSize_t dilation, diopiSize_t output_padding,
                                          int64_t groups) {
    return backward({grad_input, grad_weight, grad_bias}, grad_output, input, weight, bias_sizes,
                    transposed(stride, padding, output_padding, groups, dilation));
}

diopiError_t diopiConvTranspose3dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                          diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                          diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                          diopiConstTensorHandle_t weight, diopiSize_t* bias_sizes, diopiSize_t stride,
                                          diopiSize_t padding, diopiSize_t dilation, diopiSize_t output_padding,
                                          int64_t groups) {
    return backward({grad_input, grad_weight, grad_bias}, grad_output, input, weight, bias_sizes,
                    transposed(stride, padding, output_padding, groups, dilation));
}

}  // namespace impl::torch
