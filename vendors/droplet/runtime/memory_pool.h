// The memory of one device: first fit over an ordered list of free blocks, neighbours joined when they are freed.
//
// Under AddressSanitizer there are gaps before and behind each block, and freed memory rests before it is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace droplet {

class MemoryPool {
public:
    static constexpr size_t kAlignment = 512;

    struct Block {
        uintptr_t base;  // a device pointer
        size_t bytes;    // what was asked for
    };

    // `capacity` bytes from the device pointer `base` on; `delta` leads from there to the memory itself.
    MemoryPool(uintptr_t base, size_t capacity, ptrdiff_t delta, bool poison);

    // The device pointer of a new block, or nothing when no free block is large enough.
    std::optional<uintptr_t> allocate(size_t bytes);
    // False when no block starts at the pointer.
    bool release(uintptr_t pointer);
    // The live block that holds the pointer.
    std::optional<Block> block_of(uintptr_t pointer) const;

    size_t capacity() const { return capacity_; }
    size_t free_bytes() const;
    size_t largest_free_block() const;

private:
    struct Used {
        size_t bytes;     // what was asked for
        size_t reserved;  // with the rounding
    };
    void occupy(uintptr_t pointer, const Used& used) const;
    void vacate(uintptr_t pointer, const Used& used) const;
    // Frees what has rested longest until at most `most` bytes rest.
    void wake(size_t most);
    void insert_free(uintptr_t pointer, size_t bytes);
    void* memory(uintptr_t pointer) const;

    size_t capacity_;
    ptrdiff_t delta_;
    bool poison_;
    mutable std::mutex mutex_;
    size_t used_bytes_ = 0;
    std::map<uintptr_t, size_t> free_;  // start -> bytes, never two neighbours
    std::deque<std::pair<uintptr_t, size_t>> resting_;
    size_t resting_bytes_ = 0;
    std::map<uintptr_t, Used> used_;
};

}  // namespace droplet
