// torch's interface of a device allocator over the block pools and the vendor's malloc and free.
#include "allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>

#include "../../contract/address_sanitizer.h"
#include "device/device_api.h"
#include "memory_check.h"
#include "profiler/profiler.h"
#include "readable.h"
#include "device/stream.h"

namespace dipu {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

BlockPool& pool_of(c10::DeviceIndex device) {
    static BlockPool* const pools = new BlockPool[kMaxDevices];
    return pools[device];
}

bool memory_profiled() { return profiled.load(std::memory_order_relaxed) && c10::memoryProfilingEnabled(); }

// Tells the profiler of the calling thread; `change` in bytes is positive for an allocation.
void report_to_profiler(void* pointer, c10::DeviceIndex device, int64_t change) {
    const PoolCounters c = pool_of(device).counters();
    c10::reportMemoryUsageToProfiler(pointer, change, static_cast<std::size_t>(c.allocated_bytes),
                                     static_cast<std::size_t>(c.reserved_bytes),
                                     c10::Device(c10::kPrivateUse1, device));
}

// Work that still uses a free block must end before the vendor takes the memory back.
void return_free_blocks(c10::DeviceIndex device) {
    synchronize_device(device);
    const DeviceScope scope(device);
    for (Block* block : pool_of(device).drain()) {
        device_api().free(block->pointer);
        delete block;
    }
}

void put_back(Block* block) noexcept {
    const c10::DeviceIndex device = block->device;
    pool_of(device).put(block);
    if constexpr (diopi::kAddressSanitizer) {  // the vendor sees who still uses the memory
        try {
            return_free_blocks(device);
        } catch (const std::exception&) {
            // A device in error keeps its memory.
        }
    }
}

void release(void* context) {
    auto* const block = static_cast<Block*>(context);
    const c10::DeviceIndex device = block->device;
    if (!memory_profiled()) [[likely]] {
        put_back(block);
        return;
    }
    // Once it is put back, the block is another's.
    void* const pointer = block->pointer;
    const auto bytes = static_cast<int64_t>(block->bytes);
    put_back(block);
    report_to_profiler(pointer, device, -bytes);
}

// What a pointer that was lent has as its context.
struct Loan {
    Block* block;
    std::shared_ptr<const void> lender;
};

void end_loan(void* context) { delete static_cast<Loan*>(context); }

// The block that a pointer of this allocator owns or was lent; null for any other.
Block* block_of(const c10::DataPtr& pointer) {
    if (pointer.get_deleter() == &release) {
        return static_cast<Block*>(pointer.get_context());
    }
    return is_lent(pointer) ? static_cast<Loan*>(pointer.get_context())->block : nullptr;
}

// The part of each device's memory that may be reserved.
std::array<std::atomic<double>, kMaxDevices>& fractions() {
    static auto& values = *[] {
        auto* const all = new std::array<std::atomic<double>, kMaxDevices>;
        for (std::atomic<double>& each : *all) {
            each.store(1);
        }
        return all;
    }();
    return values;
}

void set_stat(StatArray& stats, int64_t current, int64_t peak, int64_t total) {
    Stat& stat = stats[static_cast<std::size_t>(StatType::AGGREGATE)];
    stat.current = current;
    stat.peak = peak;
    stat.allocated = total;
    stat.freed = total - current;
}

class Allocator final : public c10::DeviceAllocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        const c10::DeviceIndex device = current_device();
        const c10::Device place(c10::kPrivateUse1, device);
        if (bytes == 0) {
            return {nullptr, nullptr, &release_nothing, place};
        }
        Block* const block = allocate_block(device, thread_devices.streams[device].id, bytes);
        if (recording_stacks()) [[unlikely]] {
            pool_of(device).set_stack(block, Stack::captured());
        }
        if (memory_profiled()) [[unlikely]] {
            report_to_profiler(block->pointer, device, static_cast<int64_t>(block->bytes));
        }
        return {block->pointer, block, &release, place};
    }

    bool initialized() override { return device_count() > 0; }

    void emptyCache(c10::MempoolId_t /*pool*/) override {
        for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
            return_free_blocks(device);
        }
    }

    void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
        Block* const block = block_of(pointer);
        if (block == nullptr || (stream.id() == block->stream && stream.device_index() == block->device)) {
            return;
        }
        pool_of(block->device).add_user(block, stream);
    }

    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        const PoolCounters c = pool_of(checked_device(device)).counters();
        c10::CachingDeviceAllocator::DeviceStats stats;
        set_stat(stats.allocation, c.blocks, c.blocks_peak, c.blocks_total);
        set_stat(stats.active, c.blocks, c.blocks_peak, c.blocks_total);
        set_stat(stats.segment, c.segments, c.segments_peak, c.segments_total);
        set_stat(stats.allocated_bytes, c.allocated_bytes, c.allocated_peak, c.allocated_total);
        set_stat(stats.active_bytes, c.allocated_bytes, c.allocated_peak, c.allocated_total);
        set_stat(stats.requested_bytes, c.requested_bytes, c.requested_peak, c.requested_total);
        set_stat(stats.reserved_bytes, c.reserved_bytes, c.reserved_peak, c.reserved_total);
        stats.num_alloc_retries = c.retries;
        stats.num_ooms = c.out_of_memory;
        stats.num_device_alloc = c.segments_total;
        stats.num_device_free = c.segments_total - c.segments;
        return stats;
    }

    void resetAccumulatedStats(c10::DeviceIndex device) override { pool_of(checked_device(device)).reset_totals(); }
    void resetPeakStats(c10::DeviceIndex device) override { pool_of(checked_device(device)).reset_peaks(); }

    std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
        TORCH_CHECK_NOT_IMPLEMENTED(device_api().memory_info != nullptr,
                                    "the vendor library does not report its memory");
        uint64_t free_bytes = 0;
        uint64_t total_bytes = 0;
        check_device(device_api().memory_info(checked_device(device), &free_bytes, &total_bytes),
                     "read the size of its memory");
        return {free_bytes, total_bytes};
    }

    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

    void copy_data(void* destination, const void* source, std::size_t bytes) const override {
        const c10::Stream stream = current_stream(current_device());
        check_device(device_api().memcpy_d2d_async(native_stream(stream), destination, source, bytes),
                     "copy device memory");
    }

    static Block* allocate_block(c10::DeviceIndex device, c10::StreamId stream, std::size_t bytes) {
        // Of the very size under AddressSanitizer, so that the vendor sees the end of each tensor.
        const SizeClass size = diopi::kAddressSanitizer ? SizeClass{0, bytes} : size_class(bytes);
        BlockPool& pool = pool_of(device);
        const int graph = pool_for(device, stream);
        if (!diopi::kAddressSanitizer) {
            if (Block* const block = pool.take(stream, graph, size, bytes)) [[likely]] {
                return block;
            }
        }
        void* pointer = allocate_within_limit(device, size.bytes);
        if (pointer == nullptr) {
            pool.count_retry();
            return_free_blocks(device);
            pointer = allocate_within_limit(device, size.bytes);
        }
        if (pointer == nullptr) {
            pool.count_out_of_memory();
            const PoolCounters c = pool.counters();
            c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(bytes), static_cast<std::size_t>(c.allocated_bytes),
                                             static_cast<std::size_t>(c.reserved_bytes),
                                             c10::Device(c10::kPrivateUse1, device));
            throw_out_of_memory(device, bytes);
        }
        auto block = std::make_unique<Block>();
        block->pointer = pointer;
        block->bytes = size.bytes;
        block->requested = bytes;
        block->size_class = size.index;
        block->device = device;
        block->stream = stream;
        block->pool = graph;
        pool.adopt(block.get());
        return block.release();
    }

private:
    static void release_nothing(void* /*context*/) {}

    // Null when the device is full, or the process has its share.
    static void* allocate_within_limit(c10::DeviceIndex device, std::size_t bytes) {
        const double fraction = fractions()[static_cast<std::size_t>(device)].load(std::memory_order_relaxed);
        if (fraction < 1) {
            uint64_t free_bytes = 0;
            uint64_t total = 0;
            check_device(device_api().memory_info(device, &free_bytes, &total), "read the size of its memory");
            const int64_t reserved = pool_of(device).counters().reserved_bytes;
            if (static_cast<double>(reserved) + static_cast<double>(bytes) > fraction * static_cast<double>(total)) {
                return nullptr;
            }
        }
        return device_api().malloc(bytes);
    }

    [[noreturn]] static void throw_out_of_memory(c10::DeviceIndex device, std::size_t bytes) {
        const PoolCounters c = pool_of(device).counters();
        std::string capacity;
        uint64_t free_bytes = 0;
        uint64_t total_bytes = 0;
        if (device_api().memory_info != nullptr && device_api().memory_info(device, &free_bytes, &total_bytes) == 0) {
            capacity = " of " + readable(total_bytes) + ", " + readable(free_bytes) + " free";
            const double fraction = fractions()[static_cast<std::size_t>(device)].load(std::memory_order_relaxed);
            if (fraction < 1) {
                capacity += "; this process may reserve " +
                            readable(static_cast<uint64_t>(fraction * static_cast<double>(total_bytes)));
            }
        }
        TORCH_CHECK_WITH(OutOfMemoryError, false, "dipu:", static_cast<int>(device),
                         " is out of memory: tried to allocate ", readable(bytes), "; ",
                         readable(static_cast<uint64_t>(c.allocated_bytes)), " are in use by tensors and ",
                         readable(static_cast<uint64_t>(c.reserved_bytes)), " reserved", capacity,
                         ". Use a smaller batch, or free tensors and call torch.dipu.empty_cache()");
    }
};

}  // namespace

c10::DeviceAllocator& device_allocator() {
    static Allocator& allocator = *new Allocator;
    return allocator;
}

c10::DataPtr lent(const c10::DataPtr& owner, std::shared_ptr<const void> lender) {
    Block* const block = block_of(owner);
    TORCH_INTERNAL_ASSERT(block != nullptr || owner.get() == nullptr);
    if (block == nullptr) {  // of nothing
        return {nullptr, owner.device()};
    }
    return {owner.get(), new Loan{block, std::move(lender)}, &end_loan, owner.device()};
}

bool is_allocated(const c10::DataPtr& pointer) { return pointer.get() == nullptr || pointer.get_deleter() == &release; }

bool is_lent(const c10::DataPtr& pointer) { return pointer.get_deleter() == &end_loan; }

void wait_for_users(const c10::DataPtr& owner) {
    Block* const block = block_of(owner);
    if (block == nullptr || block->users.empty()) {
        return;
    }
    const c10::Stream waiting = current_stream(block->device);
    for (const c10::Stream& user : block->users) {
        Event event(block->device, false);
        event.record(user);
        event.block(waiting);
    }
    block->users.clear();
}

void dissolve_pool(int pool) {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        pool_of(device).dissolve(pool);
    }
}

std::vector<BlockState> memory_snapshot(c10::DeviceIndex device) { return pool_of(checked_device(device)).snapshot(); }

c10::DeviceIndex device_of_pointer(const void* pointer) {
    if (device_api().pointer_device != nullptr) {
        int32_t device = -1;
        if (device_api().pointer_device(pointer, &device) == 0) {
            return static_cast<c10::DeviceIndex>(device);
        }
    }
    const std::optional<OwnedBlock> block = block_of_pointer(pointer);
    return block.has_value() ? block->device : static_cast<c10::DeviceIndex>(-1);
}

std::optional<OwnedBlock> block_of_pointer(const void* pointer) {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        if (std::optional<BlockState> state = pool_of(device).find(pointer); state.has_value()) {
            return OwnedBlock{device, *std::move(state)};
        }
    }
    return std::nullopt;
}

void* allocate_raw(c10::DeviceIndex device, std::size_t bytes, c10::StreamId stream) {
    const DeviceScope scope(checked_device(device));
    Block* const block = Allocator::allocate_block(device, stream, bytes);
    if (recording_stacks()) {
        pool_of(device).set_stack(block, Stack::captured());
    }
    return block->pointer;
}

void free_raw(void* pointer) {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        if (Block* const block = pool_of(device).allocated_at(pointer); block != nullptr) {
            release(block);
            return;
        }
    }
    if (checking_memory()) {
        check_memory(pointer, 1, "free");
    }
    const std::optional<OwnedBlock> block = block_of_pointer(pointer);
    TORCH_CHECK(false, "dipu cannot free ", pointer, ": ",
                !block.has_value()         ? "the allocator did not give this memory"
                : block->state.allocated() ? "it is not the beginning of an allocation"
                                           : "it was freed already");
}

void set_memory_fraction(c10::DeviceIndex device, double fraction) {
    TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "a fraction of the memory lies between 0 and 1, not ", fraction);
    TORCH_CHECK_NOT_IMPLEMENTED(fraction == 1 || device_api().memory_info != nullptr,
                                "the vendor library does not report its memory, of which a fraction could be taken");
    fractions()[static_cast<std::size_t>(checked_device(device))].store(fraction);
}

double memory_fraction(c10::DeviceIndex device) {
    return fractions()[static_cast<std::size_t>(checked_device(device))].load();
}

}  // namespace dipu
