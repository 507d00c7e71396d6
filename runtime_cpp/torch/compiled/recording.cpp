// Launches of a recorded run.
#include "recording.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "device/device_api.h"
#include "memory/allocator.h"

namespace dipu::compiled {
namespace {

c10::DataPtr device_memory(std::size_t bytes) { return device_allocator().allocate(bytes); }

}  // namespace

std::size_t Place::bytes() const {
    return at::detail::computeStorageNbytes(tensor->sizes(), tensor->strides(), tensor->itemsize());
}

std::shared_ptr<SharedMemory> SharedMemory::of(c10::DeviceIndex device, diopiStreamHandle_t stream) {
    static auto& mutex = *new std::mutex;
    static auto& all = *new std::map<std::pair<c10::DeviceIndex, diopiStreamHandle_t>, std::weak_ptr<SharedMemory>>;
    const std::lock_guard lock(mutex);
    std::weak_ptr<SharedMemory>& known = all[{device, stream}];
    std::shared_ptr<SharedMemory> found = known.lock();
    if (found == nullptr) {
        found = std::make_shared<SharedMemory>();
        known = found;
    }
    return found;
}

std::shared_ptr<const c10::DataPtr> SharedMemory::arena(std::size_t bytes) {
    if (arena_ == nullptr || arena_bytes_ < bytes) {
        arena_ = std::make_shared<const c10::DataPtr>(device_memory(bytes));
        arena_bytes_ = bytes;
    }
    return arena_;
}

Recording::Recording(c10::DeviceIndex device, const RunPlaces& run, std::vector<bool> copied)
    : shared(SharedMemory::of(device, run.stream)),
      device_(device),
      copied_(std::move(copied)),
      numbers_(run.numbers),
      stream_(run.stream) {
    for (std::size_t i = 0; i < run.arguments.size(); ++i) {
        places_.push_back(run.arguments[i].address);
        if (copied_[i]) {
            copies_.push_back({i, device_memory(run.arguments[i].bytes())});
            places_.back() = static_cast<char*>(copies_.back().buffer.get());
        }
    }
}

Recording::~Recording() {
    if (graph == nullptr) {
        return;
    }
    try {
        // The device may still run it, and temporaries go with the last recording of its stream.
        synchronize_device(device_);
        const DeviceScope scope(device_);
        static_cast<void>(device_api().destroy_graph(graph));
    } catch (const std::exception& error) {
        TORCH_WARN("dipu: what was recorded of a compiled program cannot be released: ", error.what());
    }
}

bool Recording::serves(const RunPlaces& run) const {
    if (stream_ != run.stream || numbers_ != run.numbers) {
        return false;
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
        if (places_[i] != run.arguments[i].address && !copied_[i]) {
            return false;
        }
    }
    return true;
}

bool Recording::is_free() const {
    if (results.use_count() != 1) {
        return false;
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // what other threads did with the results comes first
    return true;
}

void Recording::launch(const RunPlaces& run) {
    const diopiDeviceApi_t& api = device_api();
    for (const ResultMemory::Block& block : results->blocks) {
        wait_for_users(block.memory);
    }
    for (const Copy& copy : copies_) {
        const Place& from = run.arguments[copy.argument];
        if (const std::size_t bytes = from.bytes(); bytes != 0) {
            check_device(api.memcpy_d2d_async(run.stream, copy.buffer.get(), from.address, bytes),
                         "copy an argument to where a recorded program reads it");
        }
    }
    draws.begin_replay();
    check_device(api.launch_graph(graph, run.stream), "launch what was recorded of a compiled program");
}

c10::Storage Recording::lent_result(const ResultMemory::Block& block) const {
    return c10::Storage(c10::Storage::use_byte_size_t(), block.bytes, lent(block.memory, results), &device_allocator(),
                        true);
}

}  // namespace dipu::compiled
