// Packs: neighbouring elements that a thread of a GPU reads or writes by one access.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/host_device.h"

namespace diopi::kernels {

template <class T, int width>
struct Pack {
    T at[width];
};

// `bytes` as words: a structure of small elements would be moved in several accesses.
template <int bytes>
struct alignas(bytes) PackWords {
    using Word = std::conditional_t<bytes % 4 == 0, uint32_t, uint16_t>;
    static_assert(bytes % sizeof(Word) == 0 && bytes <= 16, "an access is of 2, 4, 8 or 16 bytes");
    Word at[bytes / sizeof(Word)];
};

// nvcc may divide a structure that it stores, where branches meet.
template <int bytes>
DIOPI_HD inline void store_words(PackWords<bytes>* to, const PackWords<bytes>& words) {
#if defined(__CUDA_ARCH__)
    const auto& at = words.at;
    if constexpr (bytes == 16) return __stwb(reinterpret_cast<uint4*>(to), make_uint4(at[0], at[1], at[2], at[3]));
    if constexpr (bytes == 8) return __stwb(reinterpret_cast<uint2*>(to), make_uint2(at[0], at[1]));
#endif
    *to = words;
}

// The bytes of a pack may be more than one access takes.
template <class T, int width>
constexpr int kAccessBytes = width * sizeof(T) < 16 ? static_cast<int>(width * sizeof(T)) : 16;

// `from` is aligned to an access.
template <class T, int width>
DIOPI_HD inline Pack<T, width> load_pack(const T* from) {
    using Words = PackWords<kAccessBytes<T, width>>;
    constexpr int accesses = static_cast<int>(sizeof(Pack<T, width>) / sizeof(Words));
    Words words[accesses];
    for (int k = 0; k < accesses; ++k) words[k] = reinterpret_cast<const Words*>(from)[k];
    Pack<T, width> pack;
    memcpy(&pack, words, sizeof pack);
    return pack;
}

template <class T, int width>
DIOPI_HD inline void store_pack(T* to, const Pack<T, width>& pack) {
    using Words = PackWords<kAccessBytes<T, width>>;
    constexpr int accesses = static_cast<int>(sizeof(Pack<T, width>) / sizeof(Words));
    Words words[accesses];
    memcpy(words, &pack, sizeof pack);
    for (int k = 0; k < accesses; ++k) store_words(reinterpret_cast<Words*>(to) + k, words[k]);
}

}  // namespace diopi::kernels
