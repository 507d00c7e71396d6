// copy_elements and fill_elements: between any layouts and dtypes, used wherever a kernel needs a tensor in another
// form.
#ifndef DIOPI_KERNELS_CORE_COPY_H_
#define DIOPI_KERNELS_CORE_COPY_H_

#include "tensor.h"
#include "workspace.h"

namespace diopi::kernels {

// target[i] = source[i], broadcast and converted. Complex tensors only to their own dtype.
void copy_elements(diopiContextHandle_t ctx, const TensorView& target, const TensorView& source);

// Every element becomes `value`.
void fill_elements(diopiContextHandle_t ctx, const TensorView& target, const diopiScalar_t& value);

// `tensor` itself where it is contiguous and of that dtype, else a temporary copy that is.
inline TensorView contiguous_as(diopiContextHandle_t ctx, const TensorView& tensor, diopiDtype_t dtype) {
    if (tensor.dtype == dtype && tensor.contiguous()) return tensor;
    const TensorView copy = temporary_like(ctx, tensor, dtype);
    copy_elements(ctx, copy, tensor);
    return copy;
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_COPY_H_
