// Pinned host memory: blocks that the chip may read and write after a call has returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace droplet {

class HostMemory {
public:
    struct Block {
        uintptr_t base;
        size_t bytes;
    };

    void* allocate(size_t bytes);  // page aligned; throws std::bad_alloc
    bool release(void* pointer);   // false when no block starts there
    std::optional<Block> block_of(const void* pointer) const;

private:
    mutable std::mutex mutex_;
    std::map<uintptr_t, size_t> blocks_;  // start -> bytes
};

}  // namespace droplet
