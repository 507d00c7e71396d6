// copy_elements and fill_elements: between any layouts and dtypes, used wherever a kernel needs a tensor in another
// form.
#pragma once

#include <vector>

#include "core/scalar.h"
#include "core/view.h"
#include "core/workspace.h"

namespace diopi::kernels {

// The real (0) or imaginary (1) parts of a complex tensor.
TensorView part(TensorView tensor, int which);

// target[i] = source[i], broadcast and converted. A real number becomes a complex one without an imaginary part, which
// is lost the other way, but for a bool, which is told by both parts. A tensor is not copied to itself.
void copy_elements(Context ctx, const TensorView& target, const TensorView& source);

struct Copy {
    TensorView target;
    TensorView source;
};

// All of them, for copies that do not touch each other's memory.
void copy_all(Context ctx, const std::vector<Copy>& copies);

// Every element becomes `value`.
void fill_elements(Context ctx, const TensorView& target, const diopiScalar_t& value);

// `tensor` itself where it is contiguous and of that dtype, else a temporary copy that is.
inline TensorView contiguous_as(Context ctx, const TensorView& tensor, diopiDtype_t dtype) {
    if (tensor.dtype == dtype && tensor.contiguous()) return tensor;
    const TensorView copy = temporary_like(ctx, tensor, dtype);
    copy_elements(ctx, copy, tensor);
    return copy;
}

// Dimensions [first, last] as one; copied only where they are not evenly spaced.
inline TensorView joined_evenly(Context ctx, const TensorView& tensor, int first, int last) {
    return joined(joins(tensor, first, last) ? tensor : contiguous_as(ctx, tensor, tensor.dtype), first, last);
}

// [..., n] as [rows, n].
inline TensorView as_rows(Context ctx, const TensorView& tensor) {
    if (tensor.ndim == 1) return with_dim(tensor, 0, 1, tensor.sizes[0]);
    return joined_evenly(ctx, tensor, 0, tensor.ndim - 2);
}

// `tensor` itself where it is of that dtype, else a temporary copy that is.
inline TensorView converted(Context ctx, const TensorView& tensor, diopiDtype_t dtype) {
    return tensor.dtype == dtype ? tensor : contiguous_as(ctx, tensor, dtype);
}

inline void fill_zero(Context ctx, const TensorView& target) { fill_elements(ctx, target, integer_scalar(0)); }

// The scalar as a 0-d tensor on the device, which broadcasts to any shape. Fails when it is null.
inline TensorView scalar_tensor(Context ctx, const diopiScalar_t* value, diopiDtype_t dtype) {
    require(value != nullptr, "the scalar 'value' is null");
    const TensorView result = temporary(ctx, nullptr, 0, dtype);
    fill_elements(ctx, result, *value);
    return result;
}

}  // namespace diopi::kernels
