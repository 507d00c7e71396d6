// Free lists and counters of the caching allocator.
#include "block_pool.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <thread>

namespace dipu {

SizeClass size_class(std::size_t bytes) {
    const std::size_t grains = std::max<std::size_t>(1, (bytes + kGrain - 1) / kGrain);
    if (grains <= 4) {
        return {static_cast<int>(grains) - 1, grains * kGrain};
    }
    // grains lies in (2^k, 2^(k+1)], cut in four.
    const int k = std::bit_width(grains - 1) - 1;
    const std::size_t quarter = std::size_t{1} << (k - 2);
    const std::size_t step = (grains - (std::size_t{1} << k) + quarter - 1) / quarter;
    return {4 + (k - 2) * 4 + static_cast<int>(step) - 1, ((std::size_t{1} << k) + step * quarter) * kGrain};
}

void SpinLock::wait() noexcept {
    int turns = 0;
    do {
        while (busy_.load(std::memory_order_relaxed)) {
            if (++turns % 64 == 0) {
                std::this_thread::yield();
            }
        }
    } while (busy_.exchange(true, std::memory_order_acquire));
}

namespace {

using Lock = std::lock_guard<SpinLock>;

void raise(int64_t& current, int64_t& peak, int64_t& total, int64_t amount) {
    current += amount;
    total += amount;
    peak = std::max(peak, current);
}

BlockState state_of(const Block& block) {
    const BlockUse use = block.allocated         ? BlockUse::kAllocated
                         : block.pending.empty() ? BlockUse::kFree
                                                 : BlockUse::kWaiting;
    return {
        reinterpret_cast<std::uintptr_t>(block.pointer), block.bytes, block.requested, block.stream, use, block.stack};
}

// Null when the device refuses: it is in error then, and runs nothing that could still use the memory.
std::unique_ptr<Event> recorded_event(const c10::Stream& stream) noexcept {
    try {
        auto event = std::make_unique<Event>(stream.device_index(), false);
        event->record(stream);
        return event;
    } catch (const std::exception&) {
        return nullptr;
    }
}

// As above: a device that cannot answer runs nothing.
bool passed(const Event& event) noexcept {
    try {
        return event.query();
    } catch (const std::exception&) {
        return true;
    }
}

bool passed(const Block& block) {
    return std::all_of(block.pending.begin(), block.pending.end(), [](const auto& event) { return passed(*event); });
}

}  // namespace

void BlockPool::count_allocation(const Block& block) {
    PoolCounters& c = counters_;
    raise(c.allocated_bytes, c.allocated_peak, c.allocated_total, static_cast<int64_t>(block.bytes));
    raise(c.requested_bytes, c.requested_peak, c.requested_total, static_cast<int64_t>(block.requested));
    raise(c.blocks, c.blocks_peak, c.blocks_total, 1);
}

void BlockPool::count_release(const Block& block) {
    counters_.allocated_bytes -= static_cast<int64_t>(block.bytes);
    counters_.requested_bytes -= static_cast<int64_t>(block.requested);
    counters_.blocks -= 1;
}

std::size_t BlockPool::place_of(c10::StreamId stream, int pool) {
    return static_cast<std::size_t>(pool == kNoPool ? stream : kStreams + pool);
}

void BlockPool::push_free(Block* block) {
    std::unique_ptr<FreeLists>& lists = free_[place_of(block->stream, block->pool)];
    if (lists == nullptr) {
        lists = std::make_unique<FreeLists>();
    }
    (*lists)[static_cast<std::size_t>(block->size_class)].push_back(block);
}

Block* BlockPool::take(c10::StreamId stream, int pool, SizeClass size, std::size_t requested) {
    if (has_waiting_.load(std::memory_order_relaxed)) [[unlikely]] {
        collect();
    }
    const Lock lock(lock_);
    const std::unique_ptr<FreeLists>& lists = free_[place_of(stream, pool)];
    if (lists == nullptr) {
        return nullptr;
    }
    std::vector<Block*>& list = (*lists)[static_cast<std::size_t>(size.index)];
    if (list.empty()) {
        return nullptr;
    }
    Block* const block = list.back();
    list.pop_back();
    block->requested = requested;
    block->allocated = true;
    count_allocation(*block);
    return block;
}

void BlockPool::adopt(Block* block) {
    const Lock lock(lock_);
    blocks_[block->pointer] = block;
    raise(counters_.reserved_bytes, counters_.reserved_peak, counters_.reserved_total,
          static_cast<int64_t>(block->bytes));
    raise(counters_.segments, counters_.segments_peak, counters_.segments_total, 1);
    count_allocation(*block);
}

void BlockPool::add_user(Block* block, const c10::Stream& stream) {
    const Lock lock(lock_);
    if (std::find(block->users.begin(), block->users.end(), stream) == block->users.end()) {
        block->users.push_back(stream);
    }
}

void BlockPool::set_stack(Block* block, std::shared_ptr<Stack> stack) {
    const Lock lock(lock_);
    block->stack.swap(stack);
}

void BlockPool::put(Block* block) noexcept {
    for (const c10::Stream& user : block->users) {
        if (auto event = recorded_event(user); event != nullptr) {
            block->pending.push_back(std::move(event));
        }
    }
    block->users.clear();
    const Lock lock(lock_);
    count_release(*block);
    block->allocated = false;
    if (block->pending.empty()) {
        push_free(block);
    } else {
        waiting_.push_back(block);
        has_waiting_.store(true, std::memory_order_relaxed);
    }
}

void BlockPool::collect() {
    std::vector<Block*> waiting;
    {
        const Lock lock(lock_);
        waiting.swap(waiting_);
        has_waiting_.store(false, std::memory_order_relaxed);
    }
    // Events are queried and destroyed without the lock.
    std::vector<Block*> ready;
    std::vector<Block*> still;
    for (Block* block : waiting) {
        (passed(*block) ? ready : still).push_back(block);
    }
    std::vector<std::vector<std::unique_ptr<Event>>> events(ready.size());
    const Lock lock(lock_);
    for (std::size_t index = 0; index < ready.size(); ++index) {
        events[index].swap(ready[index]->pending);
        push_free(ready[index]);
    }
    waiting_.insert(waiting_.end(), still.begin(), still.end());
    has_waiting_.store(!waiting_.empty(), std::memory_order_relaxed);
}

std::vector<Block*> BlockPool::drain() {
    collect();
    std::vector<Block*> drained;
    const Lock lock(lock_);
    for (std::size_t place = 0; place < kStreams; ++place) {
        const std::unique_ptr<FreeLists>& lists = free_[place];
        if (lists == nullptr) {
            continue;
        }
        for (std::vector<Block*>& list : *lists) {
            drained.insert(drained.end(), list.begin(), list.end());
            list.clear();
        }
    }
    for (const Block* block : drained) {
        blocks_.erase(block->pointer);
        counters_.reserved_bytes -= static_cast<int64_t>(block->bytes);
        counters_.segments -= 1;
    }
    return drained;
}

void BlockPool::dissolve(int pool) {
    collect();
    const Lock lock(lock_);
    const std::unique_ptr<FreeLists> lists = std::move(free_[place_of(0, pool)]);
    for (const auto& [pointer, block] : blocks_) {
        if (block->pool == pool) {
            block->pool = kNoPool;
        }
    }
    if (lists != nullptr) {
        for (const std::vector<Block*>& list : *lists) {
            std::for_each(list.begin(), list.end(), [this](Block* block) { push_free(block); });
        }
    }
}

std::optional<BlockState> BlockPool::find(const void* pointer) {
    const Lock lock(lock_);
    auto next = blocks_.upper_bound(pointer);
    if (next == blocks_.begin()) {
        return std::nullopt;
    }
    const Block& block = *std::prev(next)->second;
    const auto* const begin = static_cast<const char*>(block.pointer);
    if (static_cast<const char*>(pointer) >= begin + block.bytes) {
        return std::nullopt;
    }
    return state_of(block);
}

Block* BlockPool::allocated_at(const void* pointer) {
    const Lock lock(lock_);
    const auto found = blocks_.find(pointer);
    return found != blocks_.end() && found->second->allocated ? found->second : nullptr;
}

std::vector<BlockState> BlockPool::snapshot() {
    std::vector<BlockState> states;
    const Lock lock(lock_);
    for (const auto& [pointer, block] : blocks_) {
        states.push_back(state_of(*block));
    }
    return states;
}

PoolCounters BlockPool::counters() {
    const Lock lock(lock_);
    return counters_;
}

void BlockPool::reset_peaks() {
    const Lock lock(lock_);
    PoolCounters& c = counters_;
    c.allocated_peak = c.allocated_bytes;
    c.requested_peak = c.requested_bytes;
    c.reserved_peak = c.reserved_bytes;
    c.blocks_peak = c.blocks;
    c.segments_peak = c.segments;
}

void BlockPool::reset_totals() {
    const Lock lock(lock_);
    PoolCounters& c = counters_;
    c.allocated_total = c.requested_total = c.reserved_total = c.blocks_total = c.segments_total = 0;
    c.retries = c.out_of_memory = 0;
}

void BlockPool::count_retry() {
    const Lock lock(lock_);
    counters_.retries += 1;
}

void BlockPool::count_out_of_memory() {
    const Lock lock(lock_);
    counters_.out_of_memory += 1;
}

}  // namespace dipu
