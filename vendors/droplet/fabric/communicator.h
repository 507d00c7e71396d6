// A rank's part in a communicator: what its collectives move, and how it fails.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "reduction.h"
#include "segment.h"
#include "transfer.h"

namespace droplet {

// Messages that are on their way together, and what is computed when all have come.
struct Round {
    std::vector<Transfer> transfers;
    std::function<void()> finish = nullptr;
};

using Rounds = std::deque<Round>;

}  // namespace droplet

struct tclComm_st {
public:
    tclComm_st(const tclUniqueId_t& id, int32_t ranks, int32_t rank) : segment_(id, ranks, rank) {}

    int32_t ranks() const { return segment_.ranks(); }
    int32_t rank() const { return segment_.rank(); }
    droplet::Segment& segment() { return segment_; }

    // The rounds of each collective. Throws Error (tangErrorInvalidValue) for a root or an operation that is none.
    droplet::Rounds all_reduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op);
    droplet::Rounds reduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op, int32_t root);
    droplet::Rounds reduce_scatter(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op);
    droplet::Rounds broadcast(const void* send, void* receive, size_t bytes, int32_t root);
    droplet::Rounds all_gather(const void* send, void* receive, size_t bytes);
    droplet::Rounds all_to_all(const void* send, void* receive, size_t bytes);
    void check_rank(int32_t rank) const;

    int32_t create_sum(double factor);
    void destroy_sum(int32_t op);

    // Launched work, which destroying waits for and an abort ends.
    uint64_t begin_work();  // its turn: launches on several streams go one after another, in the order of the calls
    void end_work();
    void wait_for_work();
    bool has_turn(uint64_t turn) const { return turn_.load(std::memory_order_acquire) == turn; }
    void end_turn();

    // The first failure stays.
    void fail(tangError_t status, const std::string& why);
    tangError_t status() const { return status_.load(std::memory_order_acquire); }
    std::string failure() const;

private:
    droplet::Reduction reduction(int32_t op, tclDataType_t type) const;
    // Sends to each rank its part of `send`, and has all parts of this rank reduced to `result`.
    droplet::Round reduced_part(const void* send, void* result, const std::vector<size_t>& bounds, tclDataType_t type,
                                const droplet::Reduction& reduction);

    droplet::Segment segment_;
    std::atomic<tangError_t> status_{tangSuccess};
    mutable std::mutex mutex_;
    std::condition_variable work_ended_;
    int64_t work_ = 0;
    uint64_t turns_ = 0;
    std::atomic<uint64_t> turn_{0};
    std::string failure_;
    std::map<int32_t, double> factors_;
    int32_t next_op_ = tclAvg + 1;
};
