// The usual case of an elementwise operator, recognized without TensorIterator: equal floating dtypes and shapes, dense.
//
// Integers and bools stay with the meta functions, whose checks (alpha of an integer, sub of bools) must not be skipped.
#pragma once

#include <ATen/core/Tensor.h>

#include "arguments.h"

namespace dipu {

// A contiguous device tensor of a plain floating dtype.
inline bool is_plain(const at::Tensor& tensor) {
    if (!tensor.defined()) [[unlikely]] {
        return false;
    }
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    return impl.key_set().has_backend(c10::BackendComponent::PrivateUse1Bit) &&
           c10::isFloatingType(tensor.scalar_type()) && impl.is_contiguous() && !has_lazy_bits(tensor);
}

// `second` agrees with `first` in dtype, shape, device, and is contiguous too.
inline bool agrees(const at::Tensor& first, const at::Tensor& second) {
    return is_plain(second) && first.scalar_type() == second.scalar_type() && first.sizes() == second.sizes() &&
           first.device() == second.device();
}

// The inputs allow the fast path of a functional form.
template <class... Tensors>
bool fast_inputs(const at::Tensor& first, const Tensors&... others) {
    return is_plain(first) && first.numel() != 0 && (agrees(first, others) && ...);
}

// `scalar` is a real number on the CPU that takes on the dtype of `tensor`, as `x * 2` gives it. A bool stays with the meta
// functions too, some of which refuse it.
inline bool fast_scalar(const at::Tensor& tensor, const at::Tensor& scalar) {
    return is_host_scalar(scalar) && !scalar.is_complex() && scalar.scalar_type() != c10::kBool && is_plain(tensor) &&
           tensor.numel() != 0 && (tensor.dim() > 0 || scalar.unsafeGetTensorImpl()->is_wrapped_number());
}

// `out` may be written while `input` is read: another storage, or the very same elements.
inline bool may_write(const at::Tensor& out, const at::Tensor& input) {
    return !out.is_alias_of(input) || out.storage_offset() == input.storage_offset();
}

// The same for an out= or in-place form; `out` has the dtype of the inputs.
template <class... Tensors>
bool fast_output(const at::Tensor& out, const Tensors&... inputs) {
    return fast_inputs(out, inputs...) && (may_write(out, inputs) && ...);
}

// A row-major device tensor of any shape.
DIPU_API at::Tensor new_contiguous(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device);

// The output of a functional fast path: row-major, in the shape of `input` and on its device.
DIPU_API at::Tensor new_like(const at::Tensor& input, c10::ScalarType dtype);

// e.g. channels-last stays channels-last; a tensor that is not dense gives the strides that torch would give it.
DIPU_API at::Tensor new_restrided(const at::Tensor& input, c10::ScalarType dtype);

inline at::Tensor new_like(const at::Tensor& input) { return new_like(input, input.scalar_type()); }

// The output of a plain operator whose result is like its input: same shape, and the same strides where those are dense.
inline at::Tensor new_preserved(const at::Tensor& input, c10::ScalarType dtype) {
    return input.is_contiguous() ? new_like(input, dtype) : new_restrided(input, dtype);
}

}  // namespace dipu
