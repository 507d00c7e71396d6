// Poolings that ATen has no single operator for: those told what to do by their mode, and the gradients of sequences.
#include <ATen/ops/adaptive_avg_pool1d.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/adaptive_avg_pool3d.h>
#include <ATen/ops/adaptive_max_pool1d.h>
#include <ATen/ops/adaptive_max_pool2d.h>
#include <ATen/ops/adaptive_max_pool3d.h>
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/avg_pool3d.h>
#include <ATen/ops/avg_pool3d_backward.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/zeros.h>
#include <diopi/functions.h>

#include "aten/gradients.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

struct Pooling {
    std::string_view mode;
    at::IntArrayRef kernel;
    at::IntArrayRef stride;
    at::IntArrayRef padding;
    at::IntArrayRef dilation;
    bool ceil_mode;
    bool exclusive;
};

bool takes_maximum(std::string_view mode) {
    if (mode != "max" && mode != "avg")
        throw Failure(diopiErrorOccurred, "the mode of a pooling is neither max nor avg");
    return mode == "max";
}

// `size` has a length for each dimension that has windows.
at::Tensor adaptive(const at::Tensor& input, bool maximum, at::IntArrayRef size) {
    switch (size.size()) {
        case 1:
            return maximum ? std::get<0>(at::adaptive_max_pool1d(input, size)) : at::adaptive_avg_pool1d(input, size);
        case 2:
            return maximum ? std::get<0>(at::adaptive_max_pool2d(input, size)) : at::adaptive_avg_pool2d(input, size);
        default:
            return maximum ? std::get<0>(at::adaptive_max_pool3d(input, size)) : at::adaptive_avg_pool3d(input, size);
    }
}

at::Tensor sliding(const at::Tensor& input, const Pooling& p, int64_t dims) {
    const bool maximum = takes_maximum(p.mode);
    const bool padded = !p.exclusive;
    switch (dims) {
        case 1:
            return maximum ? at::max_pool1d(input, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode)
                           : at::avg_pool1d(input, p.kernel, p.stride, p.padding, p.ceil_mode, padded);
        case 2:
            return maximum ? at::max_pool2d(input, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode)
                           : at::avg_pool2d(input, p.kernel, p.stride, p.padding, p.ceil_mode, padded);
        default:
            return maximum ? at::max_pool3d(input, p.kernel, p.stride, p.padding, p.dilation, p.ceil_mode)
                           : at::avg_pool3d(input, p.kernel, p.stride, p.padding, p.ceil_mode, padded);
    }
}

diopiError_t pool(diopiTensorHandle_t out, diopiConstTensorHandle_t input, const Pooling& pooling,
                  std::optional<at::IntArrayRef> size, int64_t dims) {
    return guarded([&] {
        const at::Tensor source = wide(input);
        write(out, size ? adaptive(source, takes_maximum(pooling.mode), *size) : sliding(source, pooling, dims));
    });
}

// Each gradient goes to the element that was the greatest of its window; where windows overlap they add up.
at::Tensor spread(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& indices, int64_t dims) {
    const at::Tensor lines = at::zeros(input.sizes(), grad_output.options()).flatten(-dims);
    return lines.scatter_add(-1, indices.flatten(-dims), grad_output.flatten(-dims)).view(input.sizes());
}

diopiError_t pool_backward(diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output,
                           diopiConstTensorHandle_t input, const Pooling& pooling, bool adapts,
                           diopiConstTensorHandle_t indices, int64_t dims) {
    return guarded([&] {
        const at::Tensor grad = wide(grad_output);
        const bool maximum = takes_maximum(pooling.mode);
        if (maximum && indices != nullptr) {
            write(grad_input, spread(grad, tensor(input), tensor(indices), dims));
            return;
        }
        const at::IntArrayRef size = grad.sizes().slice(static_cast<size_t>(grad.dim() - dims));
        write(grad_input, gradients({wide(input)}, {grad}, [&](const Tensors& in) {
                  return Tensors{adapts ? adaptive(in[0], maximum, size) : sliding(in[0], pooling, dims)};
              })[0]);
    });
}

Pooling pooling_of(const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                   bool ceil_mode, bool exclusive) {
    return {mode, ints(ksize), ints(stride), ints(padding), ints(dilation), ceil_mode, exclusive};
}

std::optional<at::IntArrayRef> size_if(bool adaptive, diopiSize_t size) {
    return adaptive ? std::optional<at::IntArrayRef>(ints(size)) : std::nullopt;
}

}  // namespace

diopiError_t diopiPool1d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                         diopiSize_t dilation, const bool ceil_mode, const bool exclusive, const bool adaptive,
                         diopiSize_t output_size) {
    return pool(out, input, pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive),
                size_if(adaptive, output_size), 1);
}

diopiError_t diopiPool1dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, const char* mode,
                                 diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                                 const bool ceil_mode, const bool exclusive, const bool adaptive,
                                 diopiConstTensorHandle_t indices) {
    const Pooling pooling = pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive);
    return pool_backward(grad_input, grad_output, input, pooling, adaptive, indices, 1);
}

diopiError_t diopiPool2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                         diopiSize_t dilation, const bool ceil_mode, const bool exclusive, const bool adaptive,
                         diopiSize_t output_size) {
    return pool(out, input, pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive),
                size_if(adaptive, output_size), 2);
}

diopiError_t diopiPool2dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, const char* mode,
                                 diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                                 const bool ceil_mode, const bool exclusive, const bool adaptive,
                                 diopiConstTensorHandle_t indices) {
    const Pooling pooling = pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive);
    return pool_backward(grad_input, grad_output, input, pooling, adaptive, indices, 2);
}

diopiError_t diopiPool3d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const char* mode, diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding,
                         diopiSize_t dilation, const bool ceil_mode, const bool exclusive, const bool adaptive,
                         diopiSize_t output_size) {
    return pool(out, input, pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive),
                size_if(adaptive, output_size), 3);
}

diopiError_t diopiPool3dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                 diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, const char* mode,
                                 diopiSize_t ksize, diopiSize_t stride, diopiSize_t padding, diopiSize_t dilation,
                                 const bool ceil_mode, const bool exclusive, const bool adaptive,
                                 diopiConstTensorHandle_t indices) {
    const Pooling pooling = pooling_of(mode, ksize, stride, padding, dilation, ceil_mode, exclusive);
    return pool_backward(grad_input, grad_output, input, pooling, adaptive, indices, 3);
}

diopiError_t diopiMaxPool1dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input, diopiSize_t,
                                    diopiSize_t, diopiSize_t, diopiSize_t, bool, diopiConstTensorHandle_t indices) {
    return guarded([&] { write(grad_input, spread(wide(grad_output), tensor(input), tensor(indices), 1)); });
}

diopiError_t diopiAvgPool1dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                                    bool count_include_pad) {
    const Pooling pooling = pooling_of("avg", kernel_size, stride, padding, {}, ceil_mode, !count_include_pad);
    return pool_backward(grad_input, grad_output, input, pooling, false, nullptr, 1);
}

// In float32 for half and bfloat16, which ATen does not average over volumes.
diopiError_t diopiAvgPool3d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                            bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        write(out, at::avg_pool3d(wide(input), ints(kernel_size), ints(stride), ints(padding), ceil_mode,
                                  count_include_pad, maybe(divisor_override)));
    });
}

diopiError_t diopiAvgPool3dBackward(diopiContextHandle_t, diopiTensorHandle_t grad_input,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiSize_t kernel_size, diopiSize_t stride, diopiSize_t padding, bool ceil_mode,
                                    bool count_include_pad, const int64_t* divisor_override) {
    return guarded([&] {
        const at::IntArrayRef steps = stride.len == 0 ? ints(kernel_size) : ints(stride);
        write(grad_input,
              at::avg_pool3d_backward(wide(grad_output), wide(input), ints(kernel_size), steps, ints(padding),
                                      ceil_mode, count_include_pad, maybe(divisor_override)));
    });
}

}  // namespace impl::torch
