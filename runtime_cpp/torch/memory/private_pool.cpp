// Which of the private pools are taken, and by how many graphs.
#include "private_pool.h"

#include <c10/util/Exception.h>

#include <array>
#include <mutex>

#include "allocator.h"
#include "captures.h"

namespace dipu {
namespace {

struct Pool {
    c10::MempoolId_t id{0, 0};
    int graphs = 0;
};

struct Pools {
    std::mutex mutex;
    std::array<Pool, kPrivatePools> all;
    uint64_t last = 0;
};

Pools& pools() {
    static Pools& known = *new Pools;
    return known;
}

}  // namespace

PrivatePool::PrivatePool(c10::MempoolId_t id) : id_(id), slot_(kNoPool) {
    const std::lock_guard lock(pools().mutex);
    if (id_ == c10::MempoolId_t{0, 0}) {
        id_ = {++pools().last, 0};
    }
    int empty = kNoPool;
    for (int slot = kPrivatePools - 1; slot >= 0; --slot) {
        Pool& pool = pools().all[static_cast<std::size_t>(slot)];
        if (pool.graphs != 0 && pool.id == id_) {
            ++pool.graphs;
            slot_ = slot;
            return;
        }
        empty = pool.graphs == 0 ? slot : empty;
    }
    TORCH_CHECK(empty != kNoPool, kPrivatePools,
                " graphs with pools of their own are the most; share a pool, or reset() some");
    pools().all[static_cast<std::size_t>(empty)] = {id_, 1};
    slot_ = empty;
}

PrivatePool::~PrivatePool() {
    const std::lock_guard lock(pools().mutex);
    if (--pools().all[static_cast<std::size_t>(slot_)].graphs == 0) {
        dissolve_pool(slot_);
    }
}

}  // namespace dipu
