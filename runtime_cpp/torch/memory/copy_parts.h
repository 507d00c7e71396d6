// Copies of complex numbers and of lazy bits, made of copies of real numbers.
#pragma once

#include <ATen/core/Tensor.h>

namespace dipu {

// Copies within one device where real parts, imaginary parts or signs must be taken apart; false where both sides are plain.
bool copy_by_parts(const at::Tensor& source, const at::Tensor& destination);

}  // namespace dipu
