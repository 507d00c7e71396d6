// atomic_add for scatters whose targets may coincide; a plain sum where one thread runs the whole launch.
#ifndef DIOPI_KERNELS_CORE_ATOMIC_H_
#define DIOPI_KERNELS_CORE_ATOMIC_H_

#include "dtype.h"

namespace diopi::kernels {

template <class T>
DIOPI_HD inline void atomic_add(T* target, T value) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
        atomicAdd(target, value);
    } else if constexpr (sizeof(T) == 8) {
        atomicAdd(reinterpret_cast<unsigned long long*>(target), static_cast<unsigned long long>(value));
    } else {
        // Narrow types: exchange the aligned word that holds the target until nobody else changed it.
        const auto address = reinterpret_cast<unsigned long long>(target);
        auto* word = reinterpret_cast<unsigned int*>(address & ~3ull);
        const unsigned int shift = static_cast<unsigned int>(address & 3ull) * 8u;
        const unsigned int mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
        unsigned int seen = *word;
        unsigned int expected;
        do {
            expected = seen;
            unsigned int bits = (expected & mask) >> shift;
            T current;
            memcpy(&current, &bits, sizeof(T));
            const T sum = cast<T>(cast<ComputeType<T>>(current) + cast<ComputeType<T>>(value));
            bits = 0;
            memcpy(&bits, &sum, sizeof(T));
            seen = atomicCAS(word, expected, (expected & ~mask) | (bits << shift));
        } while (seen != expected);
    }
#else
    if constexpr (std::is_same_v<T, bool>) {
        *target = *target || value;
    } else {
        *target = cast<T>(cast<ComputeType<T>>(*target) + cast<ComputeType<T>>(value));
    }
#endif
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_ATOMIC_H_
