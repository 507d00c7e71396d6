// Adaptive poolings that ATen has with indices only, or without a gradient of their own: a sequence is a plane of one
// row.
#include <ATen/ops/_adaptive_avg_pool2d_backward.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool2d_backward.h>
#include <ATen/ops/adaptive_max_pool3d.h>
#include <ATen/ops/adaptive_max_pool3d_backward.h>
#include <diopi/functions.h>

#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiAdaptiveMaxPool1d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                    diopiSize_t output_size) {
    return guarded([&] { write(out, std::get<0>(at::adaptive_max_pool1d(tensor(input), ints(output_size)))); });
}

diopiError_t diopiAdaptiveMaxPool1dWithIndices(diopiContextHandle_t, diopiTensorHandle_t out,
                                               diopiTensorHandle_t indices, diopiConstTensorHandle_t input,
                                               diopiSize_t output_size) {
    return guarded([&] {
        const auto [greatest, places] = at::adaptive_max_pool1d(tensor(input), ints(output_size));
        write(out, greatest);
        write(indices, places);
    });
}

diopiError_t diopiAdaptiveMaxPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                    diopiSize_t output_size) {
    return guarded([&] { write(out, std::get<0>(at::adaptive_max_pool2d(tensor(input), ints(output_size)))); });
}

diopiError_t diopiAdaptiveMaxPool3d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                    diopiSize_t output_size) {
    return guarded([&] { write(out, std::get<0>(at::adaptive_max_pool3d(tensor(input), ints(output_size)))); });
}

diopiError_t diopiAdaptiveMaxPool1dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                            diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                            diopiConstTensorHandle_t indices) {
    return guarded([&] {
        write(grad_input, at::adaptive_max_pool2d_backward(wide(grad_output).unsqueeze(-2), wide(input).unsqueeze(-2),
                                                           tensor(indices).unsqueeze(-2))
                              .squeeze(-2));
    });
}

// Sums are taken in float32, where windows overlap.
diopiError_t diopiAdaptiveMaxPool3dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                            diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                            diopiConstTensorHandle_t indices) {
    return guarded([&] {
        write(grad_input, at::adaptive_max_pool3d_backward(wide_lines(grad_output), wide_lines(input),
                                                           tensor(indices).contiguous()));
    });
}

diopiError_t diopiAdaptiveAvgPool1dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                            diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input) {
    return guarded([&] {
        write(
            grad_input,
            at::_adaptive_avg_pool2d_backward(wide(grad_output).unsqueeze(-2), wide(input).unsqueeze(-2)).squeeze(-2));
    });
}

}  // namespace impl::torch
