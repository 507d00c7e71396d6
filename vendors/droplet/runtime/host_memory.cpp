// Allocation of pinned host memory.
#include "host_memory.h"

#include <new>

#include "../../../runtime_cpp/contract/address_sanitizer.h"

namespace droplet {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

void* HostMemory::allocate(size_t bytes) {
    void* pointer = diopi::allocate_between_gaps(bytes, kPage);
    try {
        const std::lock_guard<std::mutex> lock(mutex_);
        blocks_.emplace(reinterpret_cast<uintptr_t>(pointer), bytes);
    } catch (...) {
        diopi::free_between_gaps(pointer, bytes, kPage);
        throw;
    }
    return pointer;
}

bool HostMemory::release(void* pointer) {
    size_t bytes = 0;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
        if (block == blocks_.end()) return false;
        bytes = block->second;
        blocks_.erase(block);
    }
    diopi::free_between_gaps(pointer, bytes, kPage);
    return true;
}

std::optional<HostMemory::Block> HostMemory::block_of(const void* pointer) const {
    const auto address = reinterpret_cast<uintptr_t>(pointer);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto block = blocks_.upper_bound(address);
    if (block == blocks_.begin()) return std::nullopt;
    --block;
    if (address - block->first >= block->second) return std::nullopt;
    return Block{block->first, block->second};
}

}  // namespace droplet
