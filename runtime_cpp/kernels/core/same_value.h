// store_same(): for tasks that run side by side and may write one element, all of them the same value.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor.h"

namespace diopi::kernels {

namespace detail {

template <class Word, class From>
void store_word(const TensorView& tensor, int64_t offset, From value) {
    alignas(8) unsigned char bytes[8] = {};
    TensorView converted = tensor;
    converted.data = bytes;
    store_as(converted, 0, value);
    Word word;
    memcpy(&word, bytes, sizeof(word));
    __atomic_store_n(tensor.as<Word>() + offset, word, __ATOMIC_RELAXED);
}

}  // namespace detail

// store_as() in one step, without an order among the writers.
template <class From>
DIOPI_HD inline void store_same(const TensorView& tensor, int64_t offset, From value) {
#if defined(__CUDA_ARCH__)
    store_as(tensor, offset, value);  // threads of a GPU write a word whole
#else
    switch (element_size(tensor.dtype)) {
        case 1: return detail::store_word<uint8_t>(tensor, offset, value);
        case 2: return detail::store_word<uint16_t>(tensor, offset, value);
        case 4: return detail::store_word<uint32_t>(tensor, offset, value);
        default: return detail::store_word<uint64_t>(tensor, offset, value);
    }
#endif
}

}  // namespace diopi::kernels
