// torch's caching host allocator over the vendor's pinned memory, or over aligned host memory where the vendor has none.
#include "host_allocator.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "../../contract/address_sanitizer.h"
#include "device/device_api.h"
#include "device/event.h"
#include "device/stream.h"

namespace dipu {
namespace {

using StreamEvent = std::shared_ptr<Event>;
using HostBlock = at::HostBlock<c10::Stream>;

// Address ranges of pinned memory.
class PinnedRanges {
public:
    void add(const void* begin, std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ranges_[begin] = bytes;
    }
    void remove(const void* begin) {
        const std::lock_guard<std::mutex> lock(mutex_);
        ranges_.erase(begin);
    }
    bool contains(const void* pointer) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto next = ranges_.upper_bound(pointer);
        if (next == ranges_.begin()) {
            return false;
        }
        const auto& [begin, bytes] = *std::prev(next);
        return static_cast<const char*>(pointer) < static_cast<const char*>(begin) + bytes;
    }

private:
    std::mutex mutex_;
    std::map<const void*, std::size_t> ranges_;
};

PinnedRanges& pinned_ranges() {
    static PinnedRanges& ranges = *new PinnedRanges;
    return ranges;
}

void* allocate_pinned(std::size_t bytes) {
    void* pointer = nullptr;
    if (device_api().malloc_host != nullptr && device_api().free_host != nullptr) {
        check_device(device_api().malloc_host(&pointer, bytes), "allocate pinned memory");
    } else {
        pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    }
    TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr, "the host has no ", bytes, " bytes of pinned memory");
    return pointer;
}

struct CachingHost final : at::CachingHostAllocatorImpl<c10::Stream, StreamEvent> {
private:
    void allocate_host_memory(std::size_t size, void** pointer) override {
        *pointer = allocate_pinned(size);
        pinned_ranges().add(*pointer, size);
    }
    void free_block(HostBlock* block) override {
        pinned_ranges().remove(block->ptr_);
        if (device_api().malloc_host != nullptr && device_api().free_host != nullptr) {
            device_api().free_host(block->ptr_);
        } else {
            std::free(block->ptr_);
        }
    }
    void record_stream(std::optional<std::vector<StreamEvent>>& events, c10::Stream stream) override {
        try {
            auto event = std::make_shared<Event>(stream.device_index(), false);
            event->record(stream);
            events->push_back(std::move(event));
        } catch (const c10::Error&) {
            // This runs when a tensor is freed, where nothing may throw; a device that cannot record copies no more.
        }
    }
    bool query_event(StreamEvent& event) override { return event->query(); }
    c10::Stream get_current_stream() const override { return current_stream(current_device()); }
};

void release_pinned(void* context);

struct HostAllocator final : at::CachingHostAllocatorInterface<CachingHost, release_pinned> {};

HostAllocator& instance() {
    static HostAllocator& allocator = *new HostAllocator;
    return allocator;
}

void release_pinned(void* context) {
    instance().free(context);
    if constexpr (diopi::kAddressSanitizer) {
        instance().empty_cache();  // the vendor sees who still uses the memory
    }
}

}  // namespace

at::HostAllocator& host_allocator() { return instance(); }

bool is_pinned(const void* pointer) { return pinned_ranges().contains(pointer); }

void record_pinned(const void* pointer, const c10::Stream& stream) {
    if (is_pinned(pointer)) {
        // A null context makes the allocator look the block up by its address.
        instance().record_event(const_cast<void*>(pointer), nullptr, stream);
    }
}

}  // namespace dipu
