// The chip of this process: everything that is started once, and the lookup of handles.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "address_space.h"
#include "device.h"
#include "event.h"
#include "fault.h"
#include "graph.h"
#include "host_memory.h"
#include "settings.h"
#include "thread_pool.h"

namespace droplet {

class Chip {
public:
    explicit Chip(const Settings& settings);

    const Settings& settings() const { return settings_; }
    const AddressSpace& addresses() const { return addresses_; }
    FaultPlan& faults() { return faults_; }
    HostMemory& host_memory() { return host_memory_; }
    ThreadPool& threads() { return threads_; }

    int32_t device_count() const { return static_cast<int32_t>(devices_.size()); }
    Device& device(int32_t index);  // throws Error (tangErrorInvalidDevice)
    Device& current_device();       // of this thread

    tangStream_t create_stream(Device& device, int32_t priority);
    // The stream of a handle, null being the current device's default; throws Error (tangErrorInvalidHandle).
    std::shared_ptr<tangStream_st> stream(tangStream_t handle);
    std::shared_ptr<tangStream_st> remove_stream(tangStream_t handle);

    tangEvent_t create_event(bool timed);
    std::shared_ptr<tangEvent_st> event(tangEvent_t handle);
    void remove_event(tangEvent_t handle);

    tangGraph_t keep_graph(std::unique_ptr<tangGraph_st> graph);
    std::shared_ptr<const tangGraph_st> graph(tangGraph_t handle);
    void remove_graph(tangGraph_t handle);
    // While a stream is recorded, launches take the path that looks.
    void count_recorded_streams(int change);

    void note_async_stream();

    // Decides anew whether launches may take the fast path.
    void choose_launch_path();

private:
    Settings settings_;
    AddressSpace addresses_;
    FaultPlan faults_;
    HostMemory host_memory_;
    ThreadPool threads_;
    std::vector<std::unique_ptr<Device>> devices_;
    std::mutex mutex_;
    std::unordered_map<tangStream_t, std::shared_ptr<tangStream_st>> streams_;
    std::unordered_map<tangEvent_t, std::shared_ptr<tangEvent_st>> events_;
    std::unordered_map<tangGraph_t, std::shared_ptr<const tangGraph_st>> graphs_;
    std::atomic<int> recorded_streams_{0};
    std::atomic<bool> async_stream_{false};
};

// Starts the chip at the first call. Throws Error (tangErrorInitialization) when it cannot, or in a forked process.
// It is never destroyed: worker threads may run until the process ends.
Chip& chip();

// The current device of this thread.
int32_t& current_device_index();

// Whether a launch may call its kernel at once: the chip is started and synchronous, nothing fails, now or on demand.
extern std::atomic<bool> fast_launch;
void leave_fast_launch() noexcept;

}  // namespace droplet
