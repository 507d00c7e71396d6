// The memory that the ranks of one communicator share: a channel from each rank to each other, and who is still there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tcl.h"

namespace droplet {

// Bytes on their way from one rank to another: a ring that one of them writes and the other reads.
struct Channel {
    static constexpr size_t kBytes = size_t{1} << 18;

    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> read;
    alignas(64) unsigned char data[kBytes];
};

class Segment {
public:
    // An identifier of memory that does not exist yet. Throws Error (tangErrorInitialization).
    static tclUniqueId_t make_id();
    // Whether this process is on the host of the one that made the identifier.
    static bool reaches(const tclUniqueId_t& id);

    // Returns when all ranks are there. Throws Error: tangErrorInvalidValue for ranks that do not go together,
    // tangErrorInvalidDevice for another host, tangErrorRemote when the maker of the identifier has ended.
    Segment(const tclUniqueId_t& id, int32_t ranks, int32_t rank);
    ~Segment();
    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;

    int32_t ranks() const { return ranks_; }
    int32_t rank() const { return rank_; }
    Channel& to(int32_t peer) { return channels_[rank_ * ranks_ + peer]; }
    Channel& from(int32_t peer) { return channels_[peer * ranks_ + rank_]; }

    // Tells a rank that something has changed for it.
    void ring(int32_t peer);
    // How often this rank was told; wait() returns at once when that is no longer `seen`, else after a time at most.
    uint32_t rung() const { return places_[rank_].bell.load(std::memory_order_acquire); }
    void wait(uint32_t seen, std::chrono::microseconds time);

    // Whether a rank makes no more calls: it left, or its process has ended.
    bool gone(int32_t peer) const;
    void leave();

private:
    struct alignas(64) Place {
        std::atomic<uint32_t> bell;
        std::atomic<uint32_t> state;  // 0 before it comes, 1 there, 2 gone
        std::atomic<int32_t> process;
    };

    void map(int file, size_t bytes);
    void meet(const tclUniqueId_t& id);

    int32_t ranks_;
    int32_t rank_;
    void* memory_ = nullptr;
    size_t bytes_ = 0;
    Place* places_ = nullptr;
    Channel* channels_ = nullptr;
    std::vector<int> processes_;  // file descriptors that tell when a process has ended
};

}  // namespace droplet
