// What torch refuses and a vendor's function would take: the functions that schemas name under `checks`. Each throws c10::Error, in
// torch's words.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <optional>
#include <string_view>

#include "export.h"

namespace dipu::checks {

// A number that an operator writes: it must be one of the tensor's dtype.
DIPU_API void fits(const at::Scalar& value, const at::Tensor& self);

// Memory that is written at one place for each element, and holds nothing of what is read.
DIPU_API void separate(const at::Tensor& out, std::initializer_list<at::Tensor> read);

DIPU_API void fill_mask(const at::Tensor& mask);
DIPU_API void masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value);
DIPU_API void masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value);
DIPU_API void masked_scatter(const at::Tensor& mask);

// The two parts of complex numbers, and what holds these.
DIPU_API void parts(const at::Tensor& first, const at::Tensor& second);
DIPU_API void complex_output(const at::Tensor& part, const at::Tensor& out);

// An average is a quotient, which no integer holds.
DIPU_API void mean_output(const at::Tensor& self, const std::optional<at::ScalarType>& dtype, const at::Tensor& out);

DIPU_API void roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims);
DIPU_API void distance(double p);
DIPU_API void gelu(std::string_view approximate);
DIPU_API void hardtanh(const at::Tensor& self, const at::Scalar& min_val, const at::Scalar& max_val);
DIPU_API void max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode);

// Numbers of a permutation that the dtype can tell apart.
DIPU_API void permutation(int64_t n, const at::Tensor& out);

// What a draw needs of its numbers; of a tensor's this waits for the device, as most of torch's own kernels do.
DIPU_API void share(const at::Tensor& self, double p);
DIPU_API void shares(const at::Tensor& self);
DIPU_API void deviations(const at::Tensor& deviation);

// Whole numbers to draw from: those before `to` that the dtype has, from zero on or from `from` on.
DIPU_API void whole_numbers(const at::Tensor& self, int64_t from, const std::optional<int64_t>& to);
DIPU_API void whole_numbers(const at::Tensor& self, const std::optional<int64_t>& to);

DIPU_API void multinomial(const at::Tensor& self, int64_t num_samples, bool replacement);
DIPU_API void multinomial_output(const at::Tensor& out);

}  // namespace dipu::checks
