// The C functions of the collectives.
#include <cstdio>
#include <unordered_map>

#include "launch.h"
#include "runtime/chip.h"
#include "runtime/error.h"

using droplet::at_boundary;
using droplet::chip;
using droplet::Comm;
using droplet::Launch;
using droplet::require;
using droplet::size_of;

namespace {

struct Registry {
    std::mutex mutex;
    std::unordered_map<tclComm_t, Comm> comms;
};

Registry& registry() {
    static Registry* const made = new Registry;  // workers may end after static objects
    return *made;
}

Comm comm_of(tclComm_t handle) {
    const std::lock_guard<std::mutex> lock(registry().mutex);
    const auto found = registry().comms.find(handle);
    require(found != registry().comms.end(), tangErrorInvalidHandle, "there is no such communicator, or no more");
    return found->second;
}

Comm removed(tclComm_t handle) {
    Comm comm = comm_of(handle);
    const std::lock_guard<std::mutex> lock(registry().mutex);
    registry().comms.erase(handle);
    return comm;
}

// A group of a thread: what it has asked for so far, by stream.
struct Group {
    struct Entry {
        std::shared_ptr<tangStream_st> stream;
        std::unique_ptr<Launch> launch;
    };
    int depth = 0;
    std::vector<Entry> entries;
};

thread_local Group group;

void submit(Group::Entry entry) {
    entry.stream->device().throw_if_failed();
    Launch::submit(std::move(entry.launch), *entry.stream);
}

// Adds to the thread's group, or launches at once. `add` gets the launch and the communicator.
template <class Add>
tangError_t launch(tclComm_t handle, tangStream_t stream_handle, Add&& add) {
    return at_boundary([&] {
        const Comm comm = comm_of(handle);
        const auto stream = chip().stream(stream_handle);
        if (group.depth == 0) {
            Group::Entry entry{stream, std::make_unique<Launch>()};
            add(*entry.launch, comm);
            submit(std::move(entry));
            return tangSuccess;
        }
        for (Group::Entry& entry : group.entries) {
            if (entry.stream == stream) {
                add(*entry.launch, comm);
                return tangSuccess;
            }
        }
        Group::Entry& entry = group.entries.emplace_back(Group::Entry{stream, std::make_unique<Launch>()});
        add(*entry.launch, comm);
        return tangSuccess;
    });
}

}  // namespace

tangError_t tclGetUniqueId(tclUniqueId_t* id) {
    return at_boundary([&] {
        require(id != nullptr, tangErrorInvalidValue, "tclGetUniqueId: the result pointer is null");
        *id = droplet::Segment::make_id();
        return tangSuccess;
    });
}

int32_t tclCommCanJoin(tclUniqueId_t id) { return droplet::Segment::reaches(id) ? 1 : 0; }

tangError_t tclCommInitRank(tclComm_t* result, int32_t ranks, tclUniqueId_t id, int32_t rank) {
    return at_boundary([&] {
        require(result != nullptr, tangErrorInvalidValue, "tclCommInitRank: the result pointer is null");
        auto comm = std::make_shared<tclComm_st>(id, ranks, rank);
        *result = comm.get();
        const std::lock_guard<std::mutex> lock(registry().mutex);
        registry().comms.emplace(*result, std::move(comm));
        return tangSuccess;
    });
}

tangError_t tclCommDestroy(tclComm_t handle) {
    return at_boundary([&] {
        removed(handle)->wait_for_work();
        return tangSuccess;
    });
}

tangError_t tclCommAbort(tclComm_t handle) {
    return at_boundary([&] {
        removed(handle)->fail(tangErrorAborted, "the communicator was aborted");
        return tangSuccess;
    });
}

tangError_t tclCommGetAsyncError(tclComm_t handle, tangError_t* error) {
    return at_boundary([&] {
        require(error != nullptr, tangErrorInvalidValue, "tclCommGetAsyncError: the result pointer is null");
        *error = comm_of(handle)->status();
        return tangSuccess;
    });
}

const char* tclGetLastError(tclComm_t handle) {
    thread_local std::string text;
    const tangError_t status = at_boundary([&] {
        text = handle == nullptr ? std::string() : comm_of(handle)->failure();
        return tangSuccess;
    });
    return status != tangSuccess || text.empty() ? tangGetLastErrorMessage() : text.c_str();
}

tangError_t tclRedOpCreatePreMulSum(int32_t* op, double factor, tclComm_t comm) {
    return at_boundary([&] {
        require(op != nullptr, tangErrorInvalidValue, "tclRedOpCreatePreMulSum: the result pointer is null");
        *op = comm_of(comm)->create_sum(factor);
        return tangSuccess;
    });
}

tangError_t tclRedOpDestroy(int32_t op, tclComm_t comm) {
    return at_boundary([&] {
        comm_of(comm)->destroy_sum(op);
        return tangSuccess;
    });
}

tangError_t tclAllReduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op, tclComm_t comm,
                         tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->all_reduce(send, receive, count, type, op));
    });
}

tangError_t tclReduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op, int32_t root,
                      tclComm_t comm, tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->reduce(send, receive, count, type, op, root));
    });
}

tangError_t tclReduceScatter(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op,
                             tclComm_t comm, tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->reduce_scatter(send, receive, count, type, op));
    });
}

tangError_t tclBroadcast(const void* send, void* receive, size_t count, tclDataType_t type, int32_t root,
                         tclComm_t comm, tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->broadcast(send, receive, count * size_of(type), root));
    });
}

tangError_t tclAllGather(const void* send, void* receive, size_t count, tclDataType_t type, tclComm_t comm,
                         tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->all_gather(send, receive, count * size_of(type)));
    });
}

tangError_t tclAllToAll(const void* send, void* receive, size_t count, tclDataType_t type, tclComm_t comm,
                        tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.add(ranks, ranks->all_to_all(send, receive, count * size_of(type)));
    });
}

tangError_t tclSend(const void* send, size_t count, tclDataType_t type, int32_t peer, tclComm_t comm,
                    tangStream_t stream) {
    return launch(comm, stream,
                  [&](Launch& launch, const Comm& ranks) { launch.send(ranks, peer, send, count * size_of(type)); });
}

tangError_t tclRecv(void* receive, size_t count, tclDataType_t type, int32_t peer, tclComm_t comm,
                    tangStream_t stream) {
    return launch(comm, stream, [&](Launch& launch, const Comm& ranks) {
        launch.receive(ranks, peer, receive, count * size_of(type));
    });
}

tangError_t tclGroupStart(void) {
    ++group.depth;
    return tangSuccess;
}

tangError_t tclGroupEnd(void) {
    return at_boundary([&] {
        require(group.depth > 0, tangErrorInvalidValue, "tclGroupEnd: no group was started");
        if (--group.depth > 0) return tangSuccess;
        std::vector<Group::Entry> entries;
        entries.swap(group.entries);
        for (Group::Entry& entry : entries) submit(std::move(entry));
        return tangSuccess;
    });
}
