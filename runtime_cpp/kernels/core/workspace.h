// Temporary device memory and callee-allocated outputs, both owned by the context.
#pragma once

#include <diopi/diopirt.h>

#include "tensor.h"

namespace diopi::kernels {

// A contiguous tensor that lives as long as the context says; `handle` receives it for callee-allocated outputs.
inline TensorView allocated(Context ctx, Tensor* handle, const int64_t* sizes, int ndim, diopiDtype_t dtype) {
    const Sizes shape{sizes, ndim};
    check(diopiRequireTensor(ctx, handle, &shape, nullptr, dtype, diopi_device),
          "the runtime gave no tensor: device memory is full");
    return view(*handle);
}

inline TensorView temporary(Context ctx, const int64_t* sizes, int ndim, diopiDtype_t dtype) {
    Tensor handle = nullptr;
    return allocated(ctx, &handle, sizes, ndim, dtype);
}

inline TensorView temporary_like(Context ctx, const TensorView& like, diopiDtype_t dtype) {
    return temporary(ctx, like.sizes, like.ndim, dtype);
}

// `bytes` of device memory, as an address for device code.
inline void* workspace(Context ctx, int64_t bytes) {
    Tensor handle = nullptr;
    check(diopiRequireBuffer(ctx, &handle, bytes > 0 ? bytes : 1, diopi_device),
          "the runtime gave no buffer: device memory is full");
    void* data = nullptr;
    check(diopiGetTensorData(handle, &data), "a buffer gives no data pointer");
    return launch::device_address(data);
}

template <class T>
T* workspace_of(Context ctx, int64_t count) {
    return static_cast<T*>(workspace(ctx, count * static_cast<int64_t>(sizeof(T))));
}

}  // namespace diopi::kernels
