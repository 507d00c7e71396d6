// Droplet's side of the table of collectives, over its tcl* library.
#include <diopi/collectives.h>

#include <cstring>
#include <optional>

#include "fabric/tcl.h"

namespace {

static_assert(sizeof(tclUniqueId_t) <= sizeof(diopiCommUniqueId_t), "an identifier has room for the library's");
static_assert(diopiReduceSum == static_cast<int>(tclSum) && diopiReduceProd == static_cast<int>(tclProd) &&
                  diopiReduceMax == static_cast<int>(tclMax) && diopiReduceMin == static_cast<int>(tclMin) &&
                  diopiReduceAvg == static_cast<int>(tclAvg),
              "reductions have the same numbers");

// Complex numbers, bool and the eight-bit floats are no types of the library.
std::optional<tclDataType_t> type_of(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8: return tclInt8;
        case diopi_dtype_uint8: return tclUint8;
        case diopi_dtype_int16: return tclInt16;
        case diopi_dtype_uint16: return tclUint16;
        case diopi_dtype_int32: return tclInt32;
        case diopi_dtype_uint32: return tclUint32;
        case diopi_dtype_int64: return tclInt64;
        case diopi_dtype_uint64: return tclUint64;
        case diopi_dtype_float16: return tclFloat16;
        case diopi_dtype_float32: return tclFloat32;
        case diopi_dtype_float64: return tclFloat64;
        case diopi_dtype_bfloat16: return tclBfloat16;
        default: return std::nullopt;
    }
}

tclComm_t comm_of(diopiCommHandle_t comm) { return static_cast<tclComm_t>(comm); }
tangStream_t stream_of(diopiStreamHandle_t stream) { return static_cast<tangStream_t>(stream); }

// The call with the library's type.
template <class Call>
int32_t typed(diopiDtype_t dtype, Call&& call) {
    const std::optional<tclDataType_t> type = type_of(dtype);
    return type ? call(*type) : tangErrorInvalidValue;
}

int32_t get_unique_id(diopiCommUniqueId_t* id) {
    tclUniqueId_t made = {};
    const tangError_t status = tclGetUniqueId(&made);
    std::memcpy(id->bytes, made.bytes, sizeof made.bytes);
    return status;
}

int32_t comm_init_rank(diopiCommHandle_t* comm, int32_t ranks, const diopiCommUniqueId_t* id, int32_t rank, int32_t) {
    tclUniqueId_t made = {};
    std::memcpy(made.bytes, id->bytes, sizeof made.bytes);
    return tclCommInitRank(reinterpret_cast<tclComm_t*>(comm), ranks, &made, rank);
}

int32_t comm_destroy(diopiCommHandle_t comm) { return tclCommDestroy(comm_of(comm)); }

int32_t all_reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                   diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclAllReduce(send, receive, count, type, op, comm_of(comm), stream_of(stream));
    });
}

int32_t broadcast(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, int32_t root,
                  diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclBroadcast(send, receive, count, type, root, comm_of(comm), stream_of(stream));
    });
}

int32_t all_gather(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclAllGather(send, receive, count, type, comm_of(comm), stream_of(stream));
    });
}

int32_t reduce_scatter(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                       diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclReduceScatter(send, receive, count, type, op, comm_of(comm), stream_of(stream));
    });
}

int32_t send(const void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclSend(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t recv(void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclRecv(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t group_start() { return tclGroupStart(); }

int32_t group_end() { return tclGroupEnd(); }

const char* get_last_error_string(diopiCommHandle_t comm) { return tclGetLastError(comm_of(comm)); }

int32_t supports(diopiCollective_t, diopiDtype_t dtype, diopiReduceOp_t, bool* yes) {
    *yes = type_of(dtype).has_value();
    return tangSuccess;
}

int32_t reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op, int32_t root,
               diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclReduce(send, receive, count, type, op, root, comm_of(comm), stream_of(stream));
    });
}

int32_t all_to_all(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclAllToAll(send, receive, count, type, comm_of(comm), stream_of(stream));
    });
}

int32_t comm_abort(diopiCommHandle_t comm) { return tclCommAbort(comm_of(comm)); }

int32_t comm_async_error(diopiCommHandle_t comm, int32_t* status) {
    tangError_t error = tangSuccess;
    const tangError_t asked = tclCommGetAsyncError(comm_of(comm), &error);
    *status = error;
    return asked;
}

int32_t create_premul_sum(diopiReduceOp_t* op, double factor, diopiDtype_t, diopiCommHandle_t comm) {
    int32_t made = 0;
    const tangError_t status = tclRedOpCreatePreMulSum(&made, factor, comm_of(comm));
    *op = static_cast<diopiReduceOp_t>(made);
    return status;
}

int32_t destroy_reduce_op(diopiReduceOp_t op, diopiCommHandle_t comm) { return tclRedOpDestroy(op, comm_of(comm)); }

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
};

}  // namespace

extern "C" const diopiCollectivesApi_t* diopiGetCollectivesApi(void) { return &kCollectivesApi; }
