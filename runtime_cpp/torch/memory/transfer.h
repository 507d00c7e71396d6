// Moving the bytes of dense tensors between host and devices, in the order of the current streams.
#pragma once

#include <ATen/core/Tensor.h>

namespace dipu {

// Source and destination have one dtype and equal sizes and strides, and are dense. `wait` blocks until the host may use
// the memory of its side.
void host_to_device(const at::Tensor& host, const at::Tensor& device, bool wait);
void device_to_host(const at::Tensor& device, const at::Tensor& host, bool wait);
void device_to_device(const at::Tensor& source, const at::Tensor& destination);

// A host tensor with the sizes, strides and physical contents of `device`, whatever its strides; lazy bits are kept.
at::Tensor host_image(const at::Tensor& device);

// Writes the span of a host image back to the device tensor that it was taken from.
void write_image(const at::Tensor& image, const at::Tensor& device);

}  // namespace dipu
