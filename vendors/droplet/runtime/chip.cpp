// Starts the chip and keeps its handles.
#include "chip.h"

#include <pthread.h>

#include <algorithm>
#include <string>

#include "error.h"

tangWindows_t tangWindows = {0, 0, 0};

namespace droplet {

std::atomic<bool> fast_launch{false};

namespace {

std::atomic<bool> forked{false};

void note_fork() {
    // Workers do not survive a fork and their locks may be held for ever: nothing of the chip can be used in the child.
    forked.store(true);
    fast_launch.store(false);
}

Chip* start() {
    auto started = std::make_unique<Chip>(settings());
    const AddressSpace& addresses = started->addresses();
    tangWindows = {addresses.base(), addresses.span(), addresses.delta()};
    if (pthread_atfork(nullptr, nullptr, note_fork) != 0) throw std::bad_alloc();
    started->choose_launch_path();
    return started.release();
}

}  // namespace

Chip::Chip(const Settings& settings)
    : settings_(settings),
      addresses_(settings.devices, settings.memory_bytes),
      threads_(settings.threads, settings.share_all) {
    faults_.set(settings.fault_plan);
    for (int32_t index = 0; index < settings.devices; ++index) {
        devices_.push_back(std::make_unique<Device>(index, addresses_.device_base(index), settings.memory_bytes,
                                                    addresses_.delta(), settings.poison, settings.async));
    }
}

Device& Chip::device(int32_t index) {
    if (index < 0 || index >= device_count()) {
        throw Error(tangErrorInvalidDevice, "there is no device " + std::to_string(index) + ": droplet has " +
                                                std::to_string(device_count()) + " (set DROPLET_DEVICES for more)");
    }
    return *devices_[static_cast<size_t>(index)];
}

Device& Chip::current_device() { return device(current_device_index()); }

tangStream_t Chip::create_stream(Device& device, int32_t priority) {
    auto stream = device.create_stream(priority);
    const tangStream_t handle = stream.get();
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.emplace(handle, std::move(stream));
    return handle;
}

std::shared_ptr<tangStream_st> Chip::stream(tangStream_t handle) {
    if (handle == nullptr) {
        tangStream_st& stream = current_device().default_stream();
        return {std::shared_ptr<void>(), &stream};  // owned by its device
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(handle);
    require(found != streams_.end(), tangErrorInvalidHandle, "the stream was never created or is already destroyed");
    return found->second;
}

std::shared_ptr<tangStream_st> Chip::remove_stream(tangStream_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = streams_.find(handle);
    require(found != streams_.end(), tangErrorInvalidHandle, "the stream was never created or is already destroyed");
    auto stream = std::move(found->second);
    streams_.erase(found);
    return stream;
}

tangEvent_t Chip::create_event(bool timed) {
    auto event = std::make_shared<tangEvent_st>(timed);
    const tangEvent_t handle = event.get();
    const std::lock_guard<std::mutex> lock(mutex_);
    events_.emplace(handle, std::move(event));
    return handle;
}

std::shared_ptr<tangEvent_st> Chip::event(tangEvent_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = events_.find(handle);
    require(found != events_.end(), tangErrorInvalidHandle, "the event was never created or is already destroyed");
    return found->second;
}

void Chip::remove_event(tangEvent_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    require(events_.erase(handle) == 1, tangErrorInvalidHandle, "the event was never created or is already destroyed");
}

tangGraph_t Chip::keep_graph(std::unique_ptr<tangGraph_st> graph) {
    const tangGraph_t handle = graph.get();
    const std::lock_guard<std::mutex> lock(mutex_);
    graphs_.emplace(handle, std::move(graph));
    return handle;
}

std::shared_ptr<const tangGraph_st> Chip::graph(tangGraph_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = graphs_.find(handle);
    require(found != graphs_.end(), tangErrorInvalidHandle, "the graph was never recorded or is already destroyed");
    return found->second;
}

void Chip::remove_graph(tangGraph_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    require(graphs_.erase(handle) == 1, tangErrorInvalidHandle, "the graph was never recorded or is already destroyed");
}

void Chip::count_recorded_streams(int change) {
    recorded_streams_.fetch_add(change);
    choose_launch_path();
}

void Chip::note_async_stream() {
    async_stream_.store(true);
    choose_launch_path();
}

void Chip::choose_launch_path() {
    const bool failed =
        std::any_of(devices_.begin(), devices_.end(), [](const auto& device) { return device->failed(); });
    fast_launch.store(!settings_.async && !faults_.active() && !failed && recorded_streams_.load() == 0 &&
                      !async_stream_.load());
}

Chip& chip() {
    if (forked.load(std::memory_order_relaxed)) {
        throw Error(tangErrorInitialization,
                    "the process was forked after droplet had been started: use the start method 'spawn', or start "
                    "droplet only in the child");
    }
    static Chip* const started = start();
    return *started;
}

int32_t& current_device_index() {
    thread_local int32_t index = 0;
    return index;
}

void leave_fast_launch() noexcept { fast_launch.store(false); }

}  // namespace droplet
