// The table of collectives of a library that speaks as NCCL does.
//
// A vendor's collectives.cpp defines DIOPI_COLLECTIVES(name), which puts the library's prefix before a name, and includes this file once.
// Beside it stand what libraries spell in ways of their own: the types Status, Comm, UniqueId, DataType, Operation and Stream, the status
// kDone, type_of(), which has no value for an element type that the library lacks, is_failure() of an asynchronous status, all_to_all()
// and create_premul_sum(). DIOPI_COLLECTIVES_CAN_JOIN(id) says whether this process can join, if not every one can.
#ifndef DIOPI_COLLECTIVES
#error "define DIOPI_COLLECTIVES(name), e.g. nccl##name, before this file is included"
#endif

#include <diopi/collectives.h>

#include <cstddef>
#include <cstring>
#include <optional>

namespace {

static_assert(sizeof(UniqueId) <= sizeof(diopiCommUniqueId_t), "an identifier has room for the library's");
static_assert(diopiReduceSum == static_cast<int>(DIOPI_COLLECTIVES(Sum)) &&
                  diopiReduceProd == static_cast<int>(DIOPI_COLLECTIVES(Prod)) &&
                  diopiReduceMax == static_cast<int>(DIOPI_COLLECTIVES(Max)) &&
                  diopiReduceMin == static_cast<int>(DIOPI_COLLECTIVES(Min)) &&
                  diopiReduceAvg == static_cast<int>(DIOPI_COLLECTIVES(Avg)),
              "reductions have the same numbers");

Comm comm_of(diopiCommHandle_t comm) { return static_cast<Comm>(comm); }
Stream stream_of(diopiStreamHandle_t stream) { return static_cast<Stream>(stream); }
Operation operation(diopiReduceOp_t op) { return static_cast<Operation>(static_cast<int>(op)); }

// The call with the library's type; it is not made for one that supports() denies.
template <class Call>
int32_t typed(diopiDtype_t dtype, Call&& call) {
    const std::optional<DataType> type = type_of(dtype);
    return type ? static_cast<int32_t>(call(*type)) : static_cast<int32_t>(diopiDtypeNotSupported);
}

int32_t all_to_all(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream);
int32_t create_premul_sum(diopiReduceOp_t* op, double factor, diopiDtype_t dtype, diopiCommHandle_t comm);

int32_t get_unique_id(diopiCommUniqueId_t* id) {
    UniqueId made = {};
    const Status status = DIOPI_COLLECTIVES(GetUniqueId)(&made);
    std::memcpy(id->bytes, &made, sizeof made);
    return status;
}

int32_t comm_init_rank(diopiCommHandle_t* comm, int32_t ranks, const diopiCommUniqueId_t* id, int32_t rank, int32_t) {
    UniqueId made = {};
    std::memcpy(&made, id->bytes, sizeof made);
    return DIOPI_COLLECTIVES(CommInitRank)(reinterpret_cast<Comm*>(comm), ranks, made, rank);
}

int32_t comm_async_error(diopiCommHandle_t comm, int32_t* status) {
    Status error = kDone;
    const Status asked = DIOPI_COLLECTIVES(CommGetAsyncError)(comm_of(comm), &error);
    *status = is_failure(error) ? error : kDone;
    return asked;
}

int32_t comm_destroy(diopiCommHandle_t comm) { return DIOPI_COLLECTIVES(CommDestroy)(comm_of(comm)); }

int32_t all_reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                   diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(AllReduce)(send, receive, count, type, operation(op), comm_of(comm),
                                            stream_of(stream));
    });
}

int32_t broadcast(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, int32_t root,
                  diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(Broadcast)(send, receive, count, type, root, comm_of(comm), stream_of(stream));
    });
}

int32_t all_gather(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(AllGather)(send, receive, count, type, comm_of(comm), stream_of(stream));
    });
}

int32_t reduce_scatter(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                       diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(ReduceScatter)(send, receive, count, type, operation(op), comm_of(comm),
                                                stream_of(stream));
    });
}

int32_t send(const void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(Send)(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t recv(void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(Recv)(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t group_start() { return DIOPI_COLLECTIVES(GroupStart)(); }

int32_t group_end() { return DIOPI_COLLECTIVES(GroupEnd)(); }

const char* get_last_error_string(diopiCommHandle_t comm) { return DIOPI_COLLECTIVES(GetLastError)(comm_of(comm)); }

int32_t supports(diopiCollective_t, diopiDtype_t dtype, diopiReduceOp_t, bool* yes) {
    *yes = type_of(dtype).has_value();
    return kDone;
}

int32_t reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op, int32_t root,
               diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](DataType type) {
        return DIOPI_COLLECTIVES(Reduce)(send, receive, count, type, operation(op), root, comm_of(comm),
                                         stream_of(stream));
    });
}

int32_t comm_abort(diopiCommHandle_t comm) { return DIOPI_COLLECTIVES(CommAbort)(comm_of(comm)); }

int32_t destroy_reduce_op(diopiReduceOp_t op, diopiCommHandle_t comm) {
    return DIOPI_COLLECTIVES(RedOpDestroy)(operation(op), comm_of(comm));
}

#ifdef DIOPI_COLLECTIVES_CAN_JOIN
int32_t can_join(const diopiCommUniqueId_t* id, bool* yes) {
    UniqueId made = {};
    std::memcpy(&made, id->bytes, sizeof made);
    *yes = DIOPI_COLLECTIVES_CAN_JOIN(made);
    return kDone;
}

constexpr auto kCanJoin = &can_join;
#else
constexpr std::nullptr_t kCanJoin = nullptr;
#endif

constexpr diopiCollectivesApi_t kCollectivesApi = {
    sizeof(diopiCollectivesApi_t),
    DIOPI_COLLECTIVES_API_VERSION,
    get_unique_id,
    comm_init_rank,
    comm_destroy,
    all_reduce,
    broadcast,
    all_gather,
    reduce_scatter,
    send,
    recv,
    group_start,
    group_end,
    get_last_error_string,
    supports,
    reduce,
    all_to_all,
    comm_abort,
    comm_async_error,
    create_premul_sum,
    destroy_reduce_op,
    kCanJoin,
};

}  // namespace

extern "C" const diopiCollectivesApi_t* diopiGetCollectivesApi(void) { return &kCollectivesApi; }
