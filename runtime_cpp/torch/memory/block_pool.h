// The free lists of one device: blocks by stream and size class, with their counters.
#pragma once

#include <c10/core/Stream.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "captures.h"
#include "device/event.h"
#include "stacks.h"
#include "device/stream.h"

namespace dipu {

// One allocation of the vendor; never split. It is the context of the DataPtr that owns it.
struct Block {
    void* pointer = nullptr;
    std::size_t bytes = 0;      // of the size class
    std::size_t requested = 0;  // what the tensor asked for
    int size_class = 0;
    c10::DeviceIndex device = 0;
    c10::StreamId stream = 0;
    int pool = kNoPool;  // of a graph, which alone reuses it
    bool allocated = true;
    // Other streams that use the block while it is allocated; it is free when their events have passed.
    std::vector<c10::Stream> users;
    std::vector<std::unique_ptr<Event>> pending;
    // Where it was allocated last; null unless stacks are recorded.
    std::shared_ptr<Stack> stack;
};

enum class BlockUse : uint8_t {
    kAllocated,
    kWaiting,  // for streams that used it
    kFree
};

// A block as a report shows it.
struct BlockState {
    std::uintptr_t address;
    std::size_t bytes;
    std::size_t requested;
    c10::StreamId stream;
    BlockUse use;
    std::shared_ptr<Stack> stack;

    bool allocated() const { return use == BlockUse::kAllocated; }
};

// Sizes are rounded to 512 bytes, then to quarters of a power of two, so that at most a fifth is lost.
inline constexpr std::size_t kGrain = 512;
inline constexpr int kClasses = 160;

struct SizeClass {
    int index;
    std::size_t bytes;
};
SizeClass size_class(std::size_t bytes);

// A lock for sections of a few nanoseconds; nothing inside calls the vendor.
class SpinLock {
public:
    void lock() noexcept {
        if (busy_.exchange(true, std::memory_order_acquire)) [[unlikely]] {
            wait();
        }
    }
    void unlock() noexcept { busy_.store(false, std::memory_order_release); }

private:
    void wait() noexcept;

    std::atomic<bool> busy_{false};
};

struct PoolCounters {
    int64_t allocated_bytes = 0, allocated_peak = 0, allocated_total = 0;
    int64_t requested_bytes = 0, requested_peak = 0, requested_total = 0;
    int64_t reserved_bytes = 0, reserved_peak = 0, reserved_total = 0;
    int64_t blocks = 0, blocks_peak = 0, blocks_total = 0;
    int64_t segments = 0, segments_peak = 0, segments_total = 0;
    int64_t retries = 0, out_of_memory = 0;
};

class BlockPool {
public:
    // A free block, or null. The block counts as allocated.
    Block* take(c10::StreamId stream, int pool, SizeClass size, std::size_t requested);

    // Adds a block that the vendor just gave; it counts as allocated.
    void adopt(Block* block);

    // Notes another stream that uses an allocated block.
    void add_user(Block* block, const c10::Stream& stream);

    void set_stack(Block* block, std::shared_ptr<Stack> stack);

    // Takes an allocated block back; one with users waits until their events have passed.
    void put(Block* block) noexcept;

    // Moves blocks whose events have passed to the free lists.
    void collect();

    // Removes every free block and returns them, so that the caller can give them to the vendor; not those of graphs.
    std::vector<Block*> drain();

    // The blocks of a graph's pool become those of their streams. Nothing may run that still uses them.
    void dissolve(int pool);

    // The block that contains `pointer`.
    std::optional<BlockState> find(const void* pointer);

    // The allocated block that begins at `pointer`, or null.
    Block* allocated_at(const void* pointer);

    // Blocks, allocated and free, in the order of their addresses.
    std::vector<BlockState> snapshot();

    PoolCounters counters();
    void reset_peaks();
    void reset_totals();
    void count_retry();
    void count_out_of_memory();

private:
    using FreeLists = std::array<std::vector<Block*>, kClasses>;

    void count_allocation(const Block& block);
    void count_release(const Block& block);
    void push_free(Block* block);
    static std::size_t place_of(c10::StreamId stream, int pool);

    SpinLock lock_;
    std::array<std::unique_ptr<FreeLists>, kStreams + kPrivatePools> free_;  // of streams, then of graphs
    std::vector<Block*> waiting_;
    std::atomic<bool> has_waiting_{false};
    std::map<const void*, Block*> blocks_;  // touched only when the vendor's memory is
    PoolCounters counters_;
};

}  // namespace dipu
