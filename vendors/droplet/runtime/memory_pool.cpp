// Allocation of device memory.
#include "memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "../../../runtime_cpp/contract/address_sanitizer.h"

namespace droplet {
namespace {

constexpr int kPoison = 0xFF;                  // NaN in every floating-point type, -1 in every signed integer
constexpr size_t kReturnBytes = size_t{1} << 20;  // freed blocks of this size give their pages back to the system
constexpr size_t kPage = 4096;

// Freed memory that no new block takes, so that a kernel which still uses it is caught; it counts as free.
constexpr size_t kMostRestingBytes = diopi::kAddressSanitizer ? size_t{256} << 20 : 0;

size_t reserved_bytes(size_t bytes) {
    return (bytes + MemoryPool::kAlignment - 1) / MemoryPool::kAlignment * MemoryPool::kAlignment + diopi::kGapBytes;
}

}  // namespace

MemoryPool::MemoryPool(uintptr_t base, size_t capacity, ptrdiff_t delta, bool poison)
    : capacity_(capacity),
      delta_(delta),
      poison_(poison) {
    const size_t gap = std::min(capacity, diopi::kGapBytes);  // before the first block; each block has one behind it
    free_.emplace(base + gap, capacity - gap);
    diopi::poison(memory(base), gap);
}

void* MemoryPool::memory(uintptr_t pointer) const {
    return reinterpret_cast<void*>(pointer + static_cast<uintptr_t>(delta_));
}

std::optional<uintptr_t> MemoryPool::allocate(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes > capacity_) return std::nullopt;  // before the rounding, which could overflow
    const Used used = {bytes, reserved_bytes(bytes)};
    const auto find = [&] {
        return std::find_if(free_.begin(), free_.end(),
                            [&](const auto& block) { return block.second >= used.reserved; });
    };
    auto fit = find();
    if (fit == free_.end() && !resting_.empty()) {
        wake(0);
        fit = find();
    }
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
    used_.erase(block);
    used_bytes_ -= used.reserved;
    vacate(pointer, used);
    resting_.emplace_back(pointer, used.reserved);
    resting_bytes_ += used.reserved;
    wake(kMostRestingBytes);
    return true;
}

void MemoryPool::wake(size_t most) {
    while (resting_bytes_ > most) {
        const auto [pointer, bytes] = resting_.front();
        resting_.pop_front();
        resting_bytes_ -= bytes;
        insert_free(pointer, bytes);
    }
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
    diopi::unpoison(memory(pointer), used.bytes);
    diopi::poison(memory(pointer + used.bytes), used.reserved - used.bytes);
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
    diopi::poison(memory(pointer), used.reserved);
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
