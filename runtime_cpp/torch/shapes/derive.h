// What the C functions need and ATen does not give: the functions that schemas name under `derive`.
#pragma once

#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <array>

#include "wrapper/status.h"

namespace dipu::derive {

// The sizes of a convolution's bias, one number for each output channel. The gradient is only asked for by the mask.
inline at::DimVector conv_bias_sizes(const at::Tensor& grad_output, const std::array<bool, 3>&) {
    return {grad_output.size(1)};
}

// The sizes of the bias of `linear`, whose weight is [out, in].
inline at::DimVector linear_bias_sizes(const at::Tensor& weight) { return {weight.size(0)}; }

// The sizes of what a batch norm has one of for each channel.
inline at::DimVector channel_sizes(const at::Tensor& input) { return {input.size(1)}; }

// The stride of a pooling window: its own size where none is given.
inline at::IntArrayRef pool_stride(at::IntArrayRef stride, at::IntArrayRef kernel_size) {
    return stride.empty() ? kernel_size : stride;
}

// What torch raises where a position is out of range. Along the second dimension it selects by another loop, which raises another class.
inline Raises selection_raises(const at::Tensor& self, int64_t dim) {
    return self.dim() > 1 && at::maybe_wrap_dim(dim, self.dim()) == 1 ? Raises::kError : Raises::kIndexError;
}

}  // namespace dipu::derive
