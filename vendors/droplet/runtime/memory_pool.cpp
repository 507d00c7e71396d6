// Allocation of device memory.
#include "memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

// Under AddressSanitizer what is not allocated is marked, so that a kernel that leaves its tensor is caught.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define DROPLET_MARK_UNUSABLE(pointer, bytes) __asan_poison_memory_region(pointer, bytes)
#define DROPLET_MARK_USABLE(pointer, bytes) __asan_unpoison_memory_region(pointer, bytes)
#else
#define DROPLET_MARK_UNUSABLE(pointer, bytes) static_cast<void>(0)
#define DROPLET_MARK_USABLE(pointer, bytes) static_cast<void>(0)
#endif

namespace droplet {
namespace {

constexpr int kPoison = 0xFF;                  // NaN in every floating-point type, -1 in every signed integer
constexpr size_t kReturnBytes = size_t{1} << 20;  // freed blocks of this size give their pages back to the system
constexpr size_t kPage = 4096;

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kGap = MemoryPool::kAlignment;  // stays unusable, so that the next block is not reached by one step
#else
constexpr size_t kGap = 0;
#endif

size_t reserved_bytes(size_t bytes) {
    return (bytes + MemoryPool::kAlignment - 1) / MemoryPool::kAlignment * MemoryPool::kAlignment + kGap;
}

}  // namespace

MemoryPool::MemoryPool(uintptr_t base, size_t capacity, ptrdiff_t delta, bool poison)
    : capacity_(capacity), delta_(delta), poison_(poison) {
    free_.emplace(base, capacity);
}

void* MemoryPool::memory(uintptr_t pointer) const {
    return reinterpret_cast<void*>(pointer + static_cast<uintptr_t>(delta_));
}

std::optional<uintptr_t> MemoryPool::allocate(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > capacity_) return std::nullopt;  // before the rounding, which could overflow
    const Used used = {bytes, reserved_bytes(bytes)};
    const auto fit = std::find_if(free_.begin(), free_.end(), [&](const auto& block) { return block.second >= used.reserved; });
    if (fit == free_.end()) return std::nullopt;
    const auto [pointer, available] = *fit;
    used_.emplace(pointer, used);
    free_.erase(fit);
    if (available > used.reserved) free_.emplace(pointer + used.reserved, available - used.reserved);
    used_bytes_ += used.reserved;
    occupy(pointer, used);
    return pointer;
}

bool MemoryPool::release(uintptr_t pointer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = used_.find(pointer);
    if (block == used_.end()) return false;
    const Used used = block->second;
    insert_free(pointer, used.reserved);
    used_.erase(block);
    used_bytes_ -= used.reserved;
    vacate(pointer, used);
    return true;
}

void MemoryPool::insert_free(uintptr_t pointer, size_t bytes) {
    const auto next = free_.lower_bound(pointer);
    if (next != free_.end() && pointer + bytes == next->first) {
        bytes += next->second;
        free_.erase(next);
    }
    const auto after = free_.lower_bound(pointer);
    if (after != free_.begin()) {
        const auto previous = std::prev(after);
        if (previous->first + previous->second == pointer) {
            previous->second += bytes;
            return;
        }
    }
    free_.emplace(pointer, bytes);
}

void MemoryPool::occupy(uintptr_t pointer, const Used& used) const {
    DROPLET_MARK_USABLE(memory(pointer), used.bytes);
    DROPLET_MARK_UNUSABLE(memory(pointer + used.bytes), used.reserved - used.bytes);
    if (poison_) std::memset(memory(pointer), kPoison, used.bytes);
}

void MemoryPool::vacate(uintptr_t pointer, const Used& used) const {
    if (poison_) {
        std::memset(memory(pointer), kPoison, used.bytes);
    } else if (used.reserved >= kReturnBytes) {
        const uintptr_t first = (reinterpret_cast<uintptr_t>(memory(pointer)) + kPage - 1) / kPage * kPage;
        const uintptr_t last = reinterpret_cast<uintptr_t>(memory(pointer + used.reserved)) / kPage * kPage;
        // Advice only: when the system does not take it, the block is merely not returned.
        static_cast<void>(madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED));
    }
    DROPLET_MARK_UNUSABLE(memory(pointer), used.reserved);
}

std::optional<MemoryPool::Block> MemoryPool::block_of(uintptr_t pointer) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto block = used_.upper_bound(pointer);
    if (block == used_.begin()) return std::nullopt;
    --block;
    if (pointer - block->first >= block->second.bytes) return std::nullopt;
    return Block{block->first, block->second.bytes};
}

size_t MemoryPool::free_bytes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return capacity_ - used_bytes_;
}

size_t MemoryPool::largest_free_block() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t largest = 0;
    for (const auto& block : free_) largest = std::max(largest, block.second);
    return largest;
}

}  // namespace droplet
