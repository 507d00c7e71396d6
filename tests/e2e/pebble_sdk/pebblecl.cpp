// Ranks exchange pieces through boxes of shared memory, one for each pair and direction.
#include "pebblecl.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace {

constexpr size_t kPiece = 1 << 16;

struct Box {
    std::atomic<uint32_t> full;
    uint32_t bytes;
    char data[kPiece];
};

size_t size_of(pclDataType_t type) { return type == pclUint8 ? 1 : type == pclInt32 || type == pclFloat32 ? 4 : 8; }

template <class T>
void combine(T* into, const T* from, size_t count, pclRedOp_t op) {
    for (size_t i = 0; i < count; ++i) {
        switch (op) {
            case pclProd: into[i] *= from[i]; break;
            case pclMax: into[i] = std::max(into[i], from[i]); break;
            case pclMin: into[i] = std::min(into[i], from[i]); break;
            default: into[i] += from[i];
        }
    }
}

template <class T>
void scale(T* values, size_t count, double factor) {
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<double>(values[i]) * factor);
}

// Calls `call` with a pointer of the type to the memory.
template <class Call>
void typed(pclDataType_t type, void* memory, Call&& call) {
    switch (type) {
        case pclUint8: return call(static_cast<uint8_t*>(memory));
        case pclInt32: return call(static_cast<int32_t*>(memory));
        case pclInt64: return call(static_cast<int64_t*>(memory));
        case pclFloat32: return call(static_cast<float*>(memory));
        case pclFloat64: return call(static_cast<double*>(memory));
    }
}

}  // namespace

struct pclComm_st {
    struct Shared {
        std::atomic<int> joined;
        std::atomic<int> aborted;
    };

    Shared* shared;
    Box* boxes;
    size_t bytes;
    int ranks;
    int rank;
    std::map<int, double> factors;

    Box& box(int from, int to) const { return boxes[from * ranks + to]; }
};

namespace {

struct Transfer {
    int peer;
    char* data;
    size_t left;
    bool sends;
};

// What a call moves, and what it computes when all of it has come.
struct Work {
    pclComm_t comm;
    std::vector<Transfer> transfers;
    std::function<void()> finish;
};

thread_local int depth = 0;
thread_local std::vector<Work> grouped;

// Moves a piece where one can be moved; of several transfers by one box the first.
bool advance(Work& work) {
    bool all = true;
    std::vector<const Box*> used;
    for (Transfer& transfer : work.transfers) {
        if (transfer.left == 0) continue;
        all = false;
        const int rank = work.comm->rank;
        Box& box = transfer.sends ? work.comm->box(rank, transfer.peer) : work.comm->box(transfer.peer, rank);
        if (std::find(used.begin(), used.end(), &box) != used.end()) continue;
        used.push_back(&box);
        if (transfer.sends == (box.full.load(std::memory_order_acquire) != 0)) continue;
        if (transfer.sends) {
            box.bytes = static_cast<uint32_t>(std::min(transfer.left, kPiece));
            std::memcpy(box.data, transfer.data, box.bytes);
        } else {
            std::memcpy(transfer.data, box.data, box.bytes);
        }
        transfer.data += box.bytes;
        transfer.left -= box.bytes;
        box.full.store(transfer.sends ? 1 : 0, std::memory_order_release);
    }
    return all;
}

pclResult_t run(std::vector<Work> works) {
    for (bool all = false; !all;) {
        all = true;
        for (Work& work : works) {
            if (work.comm->shared->aborted.load() != 0) return pclAborted;
            all = advance(work) && all;
        }
        if (!all) sched_yield();
    }
    for (Work& work : works) {
        if (work.finish) work.finish();
    }
    return pclSuccess;
}

pclResult_t add(Work work) {
    if (depth == 0) return run({std::move(work)});
    grouped.push_back(std::move(work));
    return pclSuccess;
}

char* at(const void* memory, size_t offset) { return const_cast<char*>(static_cast<const char*>(memory)) + offset; }

// Every rank gets `count` elements of each, which lie `stride` elements apart where they are sent from.
pclResult_t reduced(const void* send, size_t stride, void* receive, size_t count, pclDataType_t type, pclRedOp_t op,
                    pclComm_t comm, int root) {
    const size_t bytes = count * size_of(type);
    const int mine = comm->rank;
    const bool receives = root < 0 || root == mine;
    const auto arrived = std::make_shared<std::vector<char>>(receives ? bytes * static_cast<size_t>(comm->ranks) : 0);
    Work work{comm, {}, nullptr};
    for (int peer = 0; peer < comm->ranks; ++peer) {
        const size_t part = static_cast<size_t>(peer) * bytes;
        char* const own = at(send, static_cast<size_t>(peer) * stride * size_of(type));
        if (peer == mine) {
            if (receives) std::memcpy(arrived->data() + part, own, bytes);
            continue;
        }
        if (root < 0 || peer == root) work.transfers.push_back({peer, own, bytes, true});
        if (receives) work.transfers.push_back({peer, arrived->data() + part, bytes, false});
    }
    if (receives) {
        work.finish = [=] {
            typed(type, receive, [&](auto* result) {
                auto* const values = reinterpret_cast<decltype(result)>(arrived->data());
                const auto factor = comm->factors.find(op);
                if (factor != comm->factors.end()) {
                    scale(values, count * static_cast<size_t>(comm->ranks), factor->second);
                }
                std::memcpy(result, values, bytes);
                for (int peer = 1; peer < comm->ranks; ++peer) {
                    combine(result, values + static_cast<size_t>(peer) * count, count, op);
                }
                if (op == pclAvg) scale(result, count, 1.0 / comm->ranks);
            });
        };
    }
    return add(std::move(work));
}

// Every rank sends each other one a part; parts lie `from` and `to` bytes apart.
pclResult_t exchanged(const void* send, size_t from, void* receive, size_t to, size_t bytes, pclComm_t comm) {
    Work work{comm, {}, nullptr};
    for (int peer = 0; peer < comm->ranks; ++peer) {
        char* const out = at(send, static_cast<size_t>(peer) * from);
        char* const in = at(receive, static_cast<size_t>(peer) * to);
        if (peer == comm->rank) {
            std::memmove(in, out, bytes);
            continue;
        }
        work.transfers.push_back({peer, out, bytes, true});
        work.transfers.push_back({peer, in, bytes, false});
    }
    return add(std::move(work));
}

}  // namespace

extern "C" {

pclResult_t pclGetUniqueId(pclUniqueId_t* id) {
    static std::atomic<int> made{0};
    std::snprintf(id->bytes, sizeof id->bytes, "/pebblecl-%d-%d", getpid(), made++);
    return pclSuccess;
}

pclResult_t pclCommInitRank(pclComm_t* comm, int ranks, pclUniqueId_t id, int rank) {
    const size_t bytes = sizeof(pclComm_st::Shared) + 64 + sizeof(Box) * static_cast<size_t>(ranks * ranks);
    const int file = shm_open(id.bytes, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return pclSystemError;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return pclSystemError;
    auto* const shared = static_cast<pclComm_st::Shared*>(memory);
    auto* const boxes = reinterpret_cast<Box*>(static_cast<char*>(memory) + 64);
    *comm = new pclComm_st{shared, boxes, bytes, ranks, rank, {}};
    shared->joined.fetch_add(1);
    while (shared->joined.load() < ranks) sched_yield();
    shm_unlink(id.bytes);  // of no more use to anybody; the first rank succeeds
    return pclSuccess;
}

pclResult_t pclCommDestroy(pclComm_t comm) {
    munmap(comm->shared, comm->bytes);
    delete comm;
    return pclSuccess;
}

pclResult_t pclCommAbort(pclComm_t comm) {
    comm->shared->aborted.store(1);
    return pclSuccess;  // a call that waits in another thread still reads it
}

pclResult_t pclCommGetAsyncError(pclComm_t comm, pclResult_t* error) {
    *error = comm->shared->aborted.load() != 0 ? pclAborted : pclSuccess;
    return pclSuccess;
}

const char* pclGetLastError(pclComm_t comm) {
    return comm != nullptr && comm->shared->aborted.load() != 0 ? "a rank has aborted" : "";
}

pclResult_t pclRedOpCreatePreMulSum(pclRedOp_t* op, double factor, pclComm_t comm) {
    const int made = comm->factors.empty() ? pclAvg + 1 : comm->factors.rbegin()->first + 1;
    comm->factors[made] = factor;
    *op = static_cast<pclRedOp_t>(made);
    return pclSuccess;
}

pclResult_t pclRedOpDestroy(pclRedOp_t op, pclComm_t comm) {
    return comm->factors.erase(op) == 1 ? pclSuccess : pclInvalidArgument;
}

pclResult_t pclAllReduce(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op,
                         pclComm_t comm, pclStream_t) {
    return reduced(send, 0, receive, count, type, op, comm, -1);
}

pclResult_t pclReduce(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op, int root,
                      pclComm_t comm, pclStream_t) {
    return reduced(send, 0, receive, count, type, op, comm, root);
}

pclResult_t pclReduceScatter(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op,
                             pclComm_t comm, pclStream_t) {
    return reduced(send, count, receive, count, type, op, comm, -1);
}

pclResult_t pclBroadcast(const void* send, void* receive, size_t count, pclDataType_t type, int root, pclComm_t comm,
                         pclStream_t) {
    const size_t bytes = count * size_of(type);
    Work work{comm, {}, nullptr};
    if (comm->rank != root) work.transfers.push_back({root, at(receive, 0), bytes, false});
    for (int peer = 0; comm->rank == root && peer < comm->ranks; ++peer) {
        if (peer != root) work.transfers.push_back({peer, at(send, 0), bytes, true});
    }
    if (comm->rank == root && send != receive) std::memmove(receive, send, bytes);
    return add(std::move(work));
}

pclResult_t pclAllGather(const void* send, void* receive, size_t count, pclDataType_t type, pclComm_t comm,
                         pclStream_t) {
    const size_t bytes = count * size_of(type);
    return exchanged(send, 0, receive, bytes, bytes, comm);
}

pclResult_t pclAllToAll(const void* send, void* receive, size_t count, pclDataType_t type, pclComm_t comm,
                        pclStream_t) {
    const size_t bytes = count * size_of(type);
    return exchanged(send, bytes, receive, bytes, bytes, comm);
}

pclResult_t pclSend(const void* send, size_t count, pclDataType_t type, int peer, pclComm_t comm, pclStream_t) {
    return add({comm, {{peer, at(send, 0), count * size_of(type), true}}, nullptr});
}

pclResult_t pclRecv(void* receive, size_t count, pclDataType_t type, int peer, pclComm_t comm, pclStream_t) {
    return add({comm, {{peer, at(receive, 0), count * size_of(type), false}}, nullptr});
}

pclResult_t pclGroupStart(void) {
    ++depth;
    return pclSuccess;
}

pclResult_t pclGroupEnd(void) {
    if (depth == 0) return pclInvalidArgument;
    if (--depth != 0) return pclSuccess;
    std::vector<Work> works;
    works.swap(grouped);
    return run(std::move(works));
}

}  // extern "C"
