// torch's interface of a device allocator over the block pools and the vendor's malloc and free.
#include "allocator.h"

#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>

#include "device_api.h"
#include "stream.h"

namespace dipu {
namespace {

using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

BlockPool& pool_of(c10::DeviceIndex device) {
    static BlockPool* const pools = new BlockPool[kMaxDevices];
    return pools[device];
}

void release(void* context) {
    auto* const block = static_cast<Block*>(context);
    pool_of(block->device).put(block);
}

// ex) "1.50 GiB"
std::string readable(std::uint64_t bytes) {
    constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024 && unit < 4) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
    return text;
}

void set_stat(StatArray& stats, std::int64_t current, std::int64_t peak, std::int64_t total) {
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
        return {block->pointer, block, &release, place};
    }

    bool initialized() override { return device_count() > 0; }

    void emptyCache(c10::MempoolId_t /*pool*/) override {
        for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
            empty(device);
        }
    }

    void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override {
        if (pointer.get_deleter() != &release) {
            return;
        }
        auto* const block = static_cast<Block*>(pointer.get_context());
        if (stream.id() == block->stream && stream.device_index() == block->device) {
            return;
        }
        if (std::find(block->users.begin(), block->users.end(), stream) == block->users.end()) {
            block->users.push_back(stream);
        }
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
        TORCH_CHECK_NOT_IMPLEMENTED(device_api().memory_info != nullptr, "the vendor library does not report its memory");
        std::uint64_t free_bytes = 0;
        std::uint64_t total_bytes = 0;
        check_device(device_api().memory_info(checked_device(device), &free_bytes, &total_bytes), "read the size of its memory");
        return {free_bytes, total_bytes};
    }

    c10::DeleterFnPtr raw_deleter() const override { return nullptr; }

    void copy_data(void* destination, const void* source, std::size_t bytes) const override {
        const c10::Stream stream = current_stream(current_device());
        check_device(device_api().memcpy_d2d_async(native_stream(stream), destination, source, bytes), "copy device memory");
    }

private:
    static void release_nothing(void* /*context*/) {}

    Block* allocate_block(c10::DeviceIndex device, c10::StreamId stream, std::size_t bytes) {
        const SizeClass size = size_class(bytes);
        BlockPool& pool = pool_of(device);
        if (Block* const block = pool.take(stream, size, bytes)) [[likely]] {
            return block;
        }
        void* pointer = device_api().malloc(size.bytes);
        if (pointer == nullptr) {
            pool.count_retry();
            empty(device);
            pointer = device_api().malloc(size.bytes);
        }
        if (pointer == nullptr) {
            pool.count_out_of_memory();
            throw_out_of_memory(device, bytes);
        }
        auto block = std::make_unique<Block>();
        block->pointer = pointer;
        block->bytes = size.bytes;
        block->requested = bytes;
        block->size_class = size.index;
        block->device = device;
        block->stream = stream;
        pool.adopt(block.get());
        return block.release();
    }

    // Work that still uses a free block must end before the vendor takes the memory back.
    static void empty(c10::DeviceIndex device) {
        synchronize_device(device);
        const DeviceScope scope(device);
        for (Block* block : pool_of(device).drain()) {
            device_api().free(block->pointer);
            delete block;
        }
    }

    [[noreturn]] static void throw_out_of_memory(c10::DeviceIndex device, std::size_t bytes) {
        const PoolCounters c = pool_of(device).counters();
        std::string capacity;
        std::uint64_t free_bytes = 0;
        std::uint64_t total_bytes = 0;
        if (device_api().memory_info != nullptr && device_api().memory_info(device, &free_bytes, &total_bytes) == 0) {
            capacity = " of " + readable(total_bytes) + ", " + readable(free_bytes) + " free";
        }
        TORCH_CHECK_WITH(OutOfMemoryError, false, "dipu:", static_cast<int>(device), " is out of memory: tried to allocate ",
                         readable(bytes), "; ", readable(static_cast<std::uint64_t>(c.allocated_bytes)),
                         " are in use by tensors and ", readable(static_cast<std::uint64_t>(c.reserved_bytes)), " reserved", capacity,
                         ". Use a smaller batch, or free tensors and call torch.dipu.empty_cache()");
    }
};

}  // namespace

c10::DeviceAllocator& device_allocator() {
    static Allocator& allocator = *new Allocator;
    return allocator;
}

std::vector<BlockState> memory_snapshot(c10::DeviceIndex device) { return pool_of(checked_device(device)).snapshot(); }

c10::DeviceIndex device_of_pointer(const void* pointer) {
    if (device_api().pointer_device != nullptr) {
        std::int32_t device = -1;
        if (device_api().pointer_device(pointer, &device) == 0) {
            return static_cast<c10::DeviceIndex>(device);
        }
    }
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
        if (pool_of(device).find(pointer) != nullptr) {
            return device;
        }
    }
    return -1;
}

}  // namespace dipu
