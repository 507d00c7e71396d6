// What torch may refuse and a vendor's function would take: the functions that schemas name under `checks`. Each says whether torch takes
// the arguments; where it does not, torch's own kernel on the CPU is asked, which refuses the call in its words or computes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "export.h"
#include "unusual.h"

namespace dipu::checks {

// Leaves the operator that runs now to torch's kernel on the CPU if the checks are not `passed`, which it returns.
inline bool asked(bool passed) { return passed || ask_torch("arguments that torch may refuse"); }

// A number that an operator writes: it must be one of the tensor's dtype.
DIPU_API bool fits(const at::Scalar& value, const at::Tensor& self);

DIPU_API bool fill_mask(const at::Tensor& mask);
DIPU_API bool masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value);
DIPU_API bool masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value);
DIPU_API bool masked_scatter(const at::Tensor& mask);

// The two parts of complex numbers, and what holds these.
DIPU_API bool parts(const at::Tensor& first, const at::Tensor& second);
DIPU_API bool complex_output(const at::Tensor& part, const at::Tensor& out);

// An average is a quotient, which no integer holds.
DIPU_API bool mean_output(const at::Tensor& self, const std::optional<at::ScalarType>& dtype, const at::Tensor& out);

// An output that torch computes for in the dtype of the numbers themselves, whatever it has.
DIPU_API bool result_output(const at::Scalar& number, const at::Tensor& other, const at::Tensor& out);

// An output for so many numbers in a line; another torch resizes, or keeps as it is.
DIPU_API bool line_output(const at::Tensor& out, int64_t steps);

// Of bools there is none; of tensors torch's meta function says so.
DIPU_API bool difference(const at::Tensor& self, const at::Scalar& other);
inline bool difference(const at::Tensor&, const at::Tensor&) { return true; }

// Torch warns where nothing is left to divide by.
DIPU_API bool freedom(const at::Tensor& self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar>& correction);

DIPU_API bool roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims);
DIPU_API bool adaptive_pool(const at::Tensor& grad_output);
DIPU_API bool distance(double p);
DIPU_API bool gelu(std::string_view approximate);
DIPU_API bool hardtanh(const at::Tensor& self, const at::Scalar& min_val, const at::Scalar& max_val);
DIPU_API bool columns(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
                      at::IntArrayRef padding, at::IntArrayRef stride);
DIPU_API bool from_columns(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size,
                           at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride);
// Images that torch stretches without new values.
inline bool pixels(const at::Tensor& self) {
    return !c10::isIntegralType(self.scalar_type(), true) || self.scalar_type() == at::kByte;
}
// The slope of a result that was written over its input must tell the sign of that.
inline bool leaky(const at::Scalar& negative_slope, bool self_is_result) {
    return !self_is_result || negative_slope.toDouble() >= 0;
}
DIPU_API bool max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode);

// Numbers of a permutation that the dtype can tell apart.
DIPU_API bool permutation(int64_t n, const at::Tensor& out);

// What a draw needs of its numbers; of a tensor's this waits for the device, as most of torch's own kernels do.
DIPU_API bool share(const at::Tensor& self, double p);
DIPU_API bool deviations(const at::Tensor& deviation);

DIPU_API bool evenly(const at::Tensor& self, double from, double to);

// Whole numbers to draw from: those before `to` that the dtype has, from zero on or from `from` on.
DIPU_API bool whole_numbers(const at::Tensor& self, int64_t from, const std::optional<int64_t>& to);
DIPU_API bool whole_numbers(const at::Tensor& self, const std::optional<int64_t>& to);

DIPU_API bool multinomial(const at::Tensor& self, int64_t num_samples, bool replacement);
DIPU_API bool multinomial_output(const at::Tensor& out);

}  // namespace dipu::checks
