// What AddressSanitizer lets a program touch: gaps around memory, and memory that rests. Nothing happens in a build without it.
#pragma once

#include <cstddef>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define DIOPI_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIOPI_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(DIOPI_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace diopi {

#if defined(DIOPI_ADDRESS_SANITIZER)
inline constexpr bool kAddressSanitizer = true;
inline void poison(const void* memory, std::size_t bytes) { __asan_poison_memory_region(memory, bytes); }
inline void unpoison(const void* memory, std::size_t bytes) { __asan_unpoison_memory_region(memory, bytes); }
#else
inline constexpr bool kAddressSanitizer = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
#endif

// Between blocks, so that an index that is wrong by thousands of elements still leads into a gap.
inline constexpr std::size_t kGapBytes = kAddressSanitizer ? std::size_t{64} << 10 : 0;

// Host memory between two gaps; throws std::bad_alloc. `alignment` divides kGapBytes.
inline void* allocate_between_gaps(std::size_t bytes, std::align_val_t alignment) {
    char* const front = static_cast<char*>(::operator new(bytes + 2 * kGapBytes, alignment));
    char* const memory = front + kGapBytes;
    poison(front, kGapBytes);
    poison(memory + bytes, kGapBytes);
    return memory;
}

inline void free_between_gaps(void* memory, std::size_t bytes, std::align_val_t alignment) {
    char* const front = static_cast<char*>(memory) - kGapBytes;
    unpoison(front, bytes + 2 * kGapBytes);
    ::operator delete(front, alignment);
}

}  // namespace diopi
