// element() and Elements: one element of a tensor by its position, for kernels that jump about in a few named
// dimensions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/tensor.h"

namespace diopi::kernels {

// One position per dimension, e.g. offset_of(points, b, c, i)
template <class... Position>
DIOPI_HD inline int64_t offset_of(const TensorView& tensor, Position... position) {
    const int64_t positions[] = {static_cast<int64_t>(position)...};
    int64_t offset = 0;
    for (int d = 0; d < static_cast<int>(sizeof...(Position)); ++d) offset += positions[d] * tensor.strides[d];
    return offset;
}

template <class T, class... Position>
DIOPI_HD inline T& element(const TensorView& tensor, Position... position) {
    return tensor.as<T>()[offset_of(tensor, position...)];
}

// The element of whatever dtype as a number.
template <class To, class... Position>
DIOPI_HD inline To number_at(const TensorView& tensor, Position... position) {
    return load_as<To>(tensor, offset_of(tensor, position...));
}

template <class From, class... Position>
DIOPI_HD inline void set_number(const TensorView& tensor, From value, Position... position) {
    store_as(tensor, offset_of(tensor, position...), value);
}

// A flat row-major index as a position within `sizes`; the first dimension takes what is left.
template <int N>
struct Position {
    int64_t at[N];
    DIOPI_HD int64_t operator[](int d) const { return at[d]; }
};

// e.g. position_in<2>(out.sizes, i)
template <int N>
DIOPI_HD inline Position<N> position_in(const int64_t* sizes, int64_t index) {
    Position<N> position{};
    for (int d = N - 1; d > 0; --d) {
        position.at[d] = index % sizes[d];
        index /= sizes[d];
    }
    position.at[0] = index;
    return position;
}

// Fails unless the tensor is undefined or of this dtype.
inline void require_dtype(const TensorView& tensor, diopiDtype_t dtype) {
    if (tensor.defined() && tensor.dtype != dtype) fail_dtype(tensor.dtype);
}

// A tensor of a known type and number of dimensions, e.g. planes(image, channel, y, x)
template <class T, int N>
struct Elements {
    T* data;
    int64_t sizes[N];
    int64_t strides[N];

    template <class... Index>
    DIOPI_HD T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == N, "one position per dimension");
        const int64_t positions[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int d = 0; d < N; ++d) offset += positions[d] * strides[d];
        return data[offset];
    }

    DIOPI_HD Position<N> position(int64_t index) const { return position_in<N>(sizes, index); }
};

template <class T, int N>
Elements<T, N> elements_of(const TensorView& tensor, const char* name) {
    require(tensor.ndim == N, "'%s' has %d dimensions, expected %d", name, tensor.ndim, N);
    if (tensor.dtype != dtype_of<std::remove_const_t<T>>) fail_dtype(tensor.dtype);
    Elements<T, N> result{tensor.as<T>(), {}, {}};
    for (int d = 0; d < N; ++d) {
        result.sizes[d] = tensor.sizes[d];
        result.strides[d] = tensor.strides[d];
    }
    return result;
}

template <class T, int N>
Elements<T, N> elements_of(ConstTensor handle, const char* name) {
    return elements_of<T, N>(required_view(handle, name), name);
}

// An argument of a kernel that becomes Elements of whatever type and number of dimensions its task has.
struct Argument {
    TensorView tensor;
    const char* name;

    Argument(const TensorView& given, const char* called) : tensor(given), name(called) {}
    Argument(ConstTensor given, const char* called) : Argument(required_view(given, called), called) {}

    template <class T, int N>
    operator Elements<T, N>() const {
        return elements_of<T, N>(tensor, name);
    }
};

// Fails unless the tensor has these sizes.
inline void require_sizes(const TensorView& tensor, const char* name, std::initializer_list<int64_t> sizes) {
    bool same = tensor.ndim == static_cast<int32_t>(sizes.size());
    int d = 0;
    for (const int64_t size : sizes) {
        same = same && tensor.sizes[d] == size;
        ++d;
    }
    require(same, "'%s' does not have the shape that the other arguments ask for", name);
}

// The tensor of an argument that must be there, of these sizes.
inline TensorView sized_view(ConstTensor handle, const char* name, std::initializer_list<int64_t> sizes) {
    const TensorView tensor = required_view(handle, name);
    require_storable(tensor);
    require_sizes(tensor, name, sizes);
    return tensor;
}

}  // namespace diopi::kernels
