// Copies and fills of strided views: what most shape operators are once their views are worked out.
#ifndef DIOPI_KERNELS_CORE_MOVE_H_
#define DIOPI_KERNELS_CORE_MOVE_H_

#include <diopi/diopirt.h>

#include "tensor.h"

namespace diopi::kernels {

// to = from, broadcast and converted to the dtype of `to`. Views that are the same memory are left alone.
void copy(diopiStreamHandle_t stream, const TensorView& to, const TensorView& from);

// Every element of `to` becomes `value`.
void fill(diopiStreamHandle_t stream, const TensorView& to, const diopiScalar_t& value);
void fill_zero(diopiStreamHandle_t stream, const TensorView& to);

// `from` itself when it is row-major and of `dtype` already, else a temporary copy that is.
TensorView dense(diopiContextHandle_t ctx, const TensorView& from, diopiDtype_t dtype);

// `from` itself when it is of `dtype`, else a converted temporary copy.
TensorView converted(diopiContextHandle_t ctx, const TensorView& from, diopiDtype_t dtype);

// The scalar as a 0-d tensor on the device, which broadcasts to any shape. Fails when it is null.
TensorView scalar_tensor(diopiContextHandle_t ctx, const diopiScalar_t* value, diopiDtype_t dtype);

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_MOVE_H_
