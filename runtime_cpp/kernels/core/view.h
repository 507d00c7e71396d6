// Views of views: narrowing, selecting, broadcasting and transposing change sizes and strides, never elements.
#pragma once

#include <cstdint>
#include <utility>

#include "tensor.h"

namespace diopi::kernels {

inline TensorView& recounted(TensorView& tensor) {
    tensor.numel = 1;
    for (int d = 0; d < tensor.ndim; ++d) tensor.numel *= tensor.sizes[d];
    return tensor;
}

// The view whose first element lies `elements` further.
inline TensorView shifted(TensorView tensor, int64_t elements) {
    if (tensor.data != nullptr) tensor.data = tensor.as<char>() + elements * element_size(tensor.dtype);
    return tensor;
}

// A row-major view of `data`.
inline TensorView dense_view(void* data, diopiDtype_t dtype, const int64_t* sizes, int ndim) {
    require_or_fall_back(ndim <= kMaxDims, "a tensor has %d dimensions, the kernels take at most %d", ndim, kMaxDims);
    TensorView result{};
    result.data = data;
    result.dtype = dtype;
    result.ndim = ndim;
    result.numel = 1;
    for (int d = ndim - 1; d >= 0; --d) {
        result.sizes[d] = sizes[d];
        result.strides[d] = result.numel;
        result.numel *= sizes[d];
    }
    return result;
}

// Positions start, start + step, ... of dimension `dim`, `length` of them.
inline TensorView narrowed(TensorView tensor, int dim, int64_t start, int64_t length, int64_t step = 1) {
    if (length > 0) tensor = shifted(tensor, start * tensor.strides[dim]);
    tensor.sizes[dim] = length;
    tensor.strides[dim] *= step;
    return recounted(tensor);
}

inline TensorView without_dim(TensorView tensor, int dim) {
    for (int d = dim; d + 1 < tensor.ndim; ++d) {
        tensor.sizes[d] = tensor.sizes[d + 1];
        tensor.strides[d] = tensor.strides[d + 1];
    }
    --tensor.ndim;
    return recounted(tensor);
}

inline TensorView selected(const TensorView& tensor, int dim, int64_t position) {
    return without_dim(narrowed(tensor, dim, position, 1), dim);
}

inline TensorView with_dim(TensorView tensor, int dim, int64_t size, int64_t stride) {
    require_or_fall_back(tensor.ndim < kMaxDims, "the kernels take at most %d dimensions", kMaxDims);
    for (int d = tensor.ndim; d > dim; --d) {
        tensor.sizes[d] = tensor.sizes[d - 1];
        tensor.strides[d] = tensor.strides[d - 1];
    }
    tensor.sizes[dim] = size;
    tensor.strides[dim] = stride;
    ++tensor.ndim;
    return recounted(tensor);
}

inline TensorView transposed(TensorView tensor, int a, int b) {
    std::swap(tensor.sizes[a], tensor.sizes[b]);
    std::swap(tensor.strides[a], tensor.strides[b]);
    return tensor;
}

// The last two dimensions exchanged.
inline TensorView matrix_transposed(const TensorView& tensor) {
    return transposed(tensor, tensor.ndim - 2, tensor.ndim - 1);
}

// Broadcast to `sizes`, aligned at the last dimension; repeated dimensions get stride zero.
inline TensorView expanded(const TensorView& tensor, const int64_t* sizes, int ndim) {
    require(tensor.ndim <= ndim, "a tensor of %d dimensions does not broadcast to %d", tensor.ndim, ndim);
    TensorView result = dense_view(tensor.data, tensor.dtype, sizes, ndim);
    const int lead = ndim - tensor.ndim;
    for (int d = 0; d < ndim; ++d) {
        const int64_t size = d < lead ? 1 : tensor.sizes[d - lead];
        require(size == sizes[d] || size == 1, "size %lld does not broadcast to %lld in dimension %d", size, sizes[d],
                d);
        result.strides[d] = size == 1 ? 0 : tensor.strides[d - lead];
    }
    return result;
}

// The shape that two tensors broadcast to, if they do.
inline TensorView common_shape(TensorView longer, TensorView shorter) {
    if (longer.ndim < shorter.ndim) std::swap(longer, shorter);
    for (int d = 0; d < shorter.ndim; ++d) {
        int64_t& size = longer.sizes[longer.ndim - shorter.ndim + d];
        if (size == 1) size = shorter.sizes[d];
    }
    return recounted(longer);
}

inline TensorView expanded_to(const TensorView& tensor, const TensorView& shape) {
    return expanded(tensor, shape.sizes, shape.ndim);
}

// True when dimensions [first, last] step through memory as one dimension does.
inline bool joins(const TensorView& tensor, int first, int last) {
    int64_t expected = -1;
    for (int d = last; d >= first; --d) {
        if (tensor.sizes[d] == 1) continue;
        if (expected >= 0 && tensor.strides[d] != expected) return false;
        expected = tensor.strides[d] * tensor.sizes[d];
    }
    return true;
}

// Dimensions [first, last] as one; joins() must hold.
inline TensorView joined(TensorView tensor, int first, int last) {
    int64_t size = 1;
    int64_t stride = 1;
    for (int d = last; d >= first; --d) {
        if (size == 1 && tensor.sizes[d] != 1) stride = tensor.strides[d];
        size *= tensor.sizes[d];
    }
    for (int d = last; d > first; --d) tensor = without_dim(tensor, d);
    tensor.sizes[first] = size;
    tensor.strides[first] = stride;
    return recounted(tensor);
}

// A 0-d tensor as a tensor of one dimension: what dim = 0 means for it.
inline TensorView at_least_1d(const TensorView& tensor) {
    return tensor.ndim == 0 ? with_dim(tensor, 0, 1, 1) : tensor;
}

inline void require_same_sizes(const TensorView& a, const TensorView& b, const char* a_name, const char* b_name) {
    require(a.same_sizes(b), "'%s' and '%s' differ in shape", a_name, b_name);
}

}  // namespace diopi::kernels
