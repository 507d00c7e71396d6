// Elements: a tensor of a known type and number of dimensions, whose elements are named by their indices.
#ifndef DIOPI_KERNELS_CORE_ELEMENTS_H_
#define DIOPI_KERNELS_CORE_ELEMENTS_H_

#include <cstdint>
#include <type_traits>

#include "dtype.h"
#include "index.h"
#include "tensor.h"

namespace diopi::kernels {

template <class T, int N>
struct Elements {
    T* data;
    int64_t sizes[N];
    int64_t strides[N];

    // ex) planes(image, channel, y, x)
    template <class... Index>
    DIOPI_HD T& operator()(Index... index) const {
        static_assert(sizeof...(Index) == N, "one index for each dimension");
        const int64_t at[] = {static_cast<int64_t>(index)...};
        int64_t offset = 0;
        for (int d = 0; d < N; ++d) offset += at[d] * strides[d];
        return data[offset];
    }

    DIOPI_HD int64_t numel() const {
        int64_t count = 1;
        for (int d = 0; d < N; ++d) count *= sizes[d];
        return count;
    }

    // The indices of an element that is counted in row-major order.
    DIOPI_HD Offsets<N> indices(int64_t flat) const {
        Offsets<N> result;
        for (int d = N - 1; d >= 0; --d) {
            result.at[d] = flat % sizes[d];
            flat /= sizes[d];
        }
        return result;
    }
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

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_ELEMENTS_H_
