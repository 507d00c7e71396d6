// Allocation of pinned host memory.
#include "host_memory.h"

#include <new>

namespace droplet {
namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

void* HostMemory::allocate(size_t bytes) {
    void* pointer = ::operator new(bytes, kPage);
    try {
        const std::lock_guard<std::mutex> lock(mutex_);
        blocks_.emplace(reinterpret_cast<uintptr_t>(pointer), bytes);
    } catch (...) {
        ::operator delete(pointer, kPage);
        throw;
    }
    return pointer;
}

bool HostMemory::release(void* pointer) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (blocks_.erase(reinterpret_cast<uintptr_t>(pointer)) == 0) return false;
    }
    ::operator delete(pointer, kPage);
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
