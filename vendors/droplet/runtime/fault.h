// Faults on demand: what a test needs to see how a caller behaves when the chip fails.
//
// A plan is a list with commas, each entry counted from the time that the plan is set:
//   malloc:5           the 5th allocation of device memory fails as if the device were full
//   launch:12          the 12th launch fails on the device
//   slow-copy:2000us   each copy takes 2000 microseconds longer
//   slow-link:2000us   each step of a collective takes 2000 microseconds longer
//   rank-die:3         the process ends in the middle of its 3rd collective
//   rank-hang:3        its 3rd collective takes no part until it is aborted
//   link-corrupt:3     one bit of what its 3rd collective sends to each rank is wrong
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace droplet {

enum class CollectiveFault { none, die, hang, corrupt };

class FaultPlan {
public:
    // Throws Error (tangErrorInitialization) for a plan that cannot be read; the old plan stays then.
    void set(std::string_view text);

    bool active() const { return active_.load(std::memory_order_relaxed); }
    bool next_malloc_fails() { return counts_down(mallocs_); }
    bool next_launch_fails() { return counts_down(launches_); }
    CollectiveFault next_collective() {
        if (!active()) return CollectiveFault::none;
        if (counts_down(deaths_)) return CollectiveFault::die;
        if (counts_down(hangs_)) return CollectiveFault::hang;
        return counts_down(corruptions_) ? CollectiveFault::corrupt : CollectiveFault::none;
    }
    std::chrono::microseconds link_delay() const {
        return std::chrono::microseconds(link_delay_.load(std::memory_order_relaxed));
    }
    std::chrono::microseconds copy_delay() const {
        return std::chrono::microseconds(copy_delay_.load(std::memory_order_relaxed));
    }

private:
    static bool counts_down(std::atomic<int64_t>& remaining) {
        return remaining.load(std::memory_order_relaxed) > 0 && remaining.fetch_sub(1, std::memory_order_relaxed) == 1;
    }

    std::atomic<bool> active_{false};
    std::atomic<int64_t> mallocs_{0};  // how many allocations until the one that fails; 0 for none
    std::atomic<int64_t> launches_{0};
    std::atomic<int64_t> copy_delay_{0};  // microseconds
    std::atomic<int64_t> link_delay_{0};
    std::atomic<int64_t> deaths_{0};  // how many collectives until the one
    std::atomic<int64_t> hangs_{0};
    std::atomic<int64_t> corruptions_{0};
};

}  // namespace droplet
