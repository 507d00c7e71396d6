// CUDA's side of the table of collectives: NCCL.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <diopi/collectives.h>
#include <nccl.h>

#include <cstring>
#include <optional>

namespace {

static_assert(sizeof(ncclUniqueId) <= sizeof(diopiCommUniqueId_t), "an identifier has room for the library's");
static_assert(diopiReduceSum == static_cast<int>(ncclSum) && diopiReduceProd == static_cast<int>(ncclProd) &&
                  diopiReduceMax == static_cast<int>(ncclMax) && diopiReduceMin == static_cast<int>(ncclMin) &&
                  diopiReduceAvg == static_cast<int>(ncclAvg),
              "reductions have the same numbers");

// Complex numbers, bool, numbers of 16 bits and the eight-bit floats are no types that NCCL reduces everywhere.
std::optional<ncclDataType_t> type_of(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8: return ncclInt8;
        case diopi_dtype_uint8: return ncclUint8;
        case diopi_dtype_int32: return ncclInt32;
        case diopi_dtype_uint32: return ncclUint32;
        case diopi_dtype_int64: return ncclInt64;
        case diopi_dtype_uint64: return ncclUint64;
        case diopi_dtype_float16: return ncclFloat16;
        case diopi_dtype_float32: return ncclFloat32;
        case diopi_dtype_float64: return ncclFloat64;
        case diopi_dtype_bfloat16: return ncclBfloat16;
        default: return std::nullopt;
    }
}

ncclComm_t comm_of(diopiCommHandle_t comm) { return static_cast<ncclComm_t>(comm); }
cudaStream_t stream_of(diopiStreamHandle_t stream) { return static_cast<cudaStream_t>(stream); }
ncclRedOp_t operation(diopiReduceOp_t op) { return static_cast<ncclRedOp_t>(static_cast<int>(op)); }

// The call with NCCL's type.
template <class Call>
int32_t typed(diopiDtype_t dtype, Call&& call) {
    const std::optional<ncclDataType_t> type = type_of(dtype);
    return type ? call(*type) : ncclInvalidArgument;
}

ncclResult_t element_size(ncclDataType_t type, size_t* bytes) {
    switch (type) {
        case ncclInt8:
        case ncclUint8: *bytes = 1; return ncclSuccess;
        case ncclFloat16:
        case ncclBfloat16: *bytes = 2; return ncclSuccess;
        case ncclInt32:
        case ncclUint32:
        case ncclFloat32: *bytes = 4; return ncclSuccess;
        case ncclInt64:
        case ncclUint64:
        case ncclFloat64: *bytes = 8; return ncclSuccess;
        default: return ncclInvalidArgument;
    }
}

int32_t get_unique_id(diopiCommUniqueId_t* id) {
    ncclUniqueId made = {};
    const ncclResult_t status = ncclGetUniqueId(&made);
    std::memcpy(id->bytes, made.internal, sizeof made.internal);
    return status;
}

int32_t comm_init_rank(diopiCommHandle_t* comm, int32_t ranks, const diopiCommUniqueId_t* id, int32_t rank, int32_t) {
    ncclUniqueId made = {};
    std::memcpy(made.internal, id->bytes, sizeof made.internal);
    return ncclCommInitRank(reinterpret_cast<ncclComm_t*>(comm), ranks, made, rank);
}

int32_t comm_destroy(diopiCommHandle_t comm) { return ncclCommDestroy(comm_of(comm)); }

int32_t all_reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                   diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclAllReduce(send, receive, count, type, operation(op), comm_of(comm), stream_of(stream));
    });
}

int32_t broadcast(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, int32_t root,
                  diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclBroadcast(send, receive, count, type, root, comm_of(comm), stream_of(stream));
    });
}

int32_t all_gather(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclAllGather(send, receive, count, type, comm_of(comm), stream_of(stream));
    });
}

int32_t reduce_scatter(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op,
                       diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclReduceScatter(send, receive, count, type, operation(op), comm_of(comm), stream_of(stream));
    });
}

int32_t send(const void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclSend(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t recv(void* buffer, uint64_t count, diopiDtype_t dtype, int32_t peer, diopiCommHandle_t comm,
             diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclRecv(buffer, count, type, peer, comm_of(comm), stream_of(stream));
    });
}

int32_t group_start() { return ncclGroupStart(); }

int32_t group_end() { return ncclGroupEnd(); }

const char* get_last_error_string(diopiCommHandle_t comm) { return ncclGetLastError(comm_of(comm)); }

int32_t supports(diopiCollective_t, diopiDtype_t dtype, diopiReduceOp_t, bool* yes) {
    *yes = type_of(dtype).has_value();
    return ncclSuccess;
}

int32_t reduce(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiReduceOp_t op, int32_t root,
               diopiCommHandle_t comm, diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        return ncclReduce(send, receive, count, type, operation(op), root, comm_of(comm), stream_of(stream));
    });
}

// Messages in a group, as PyTorch has them: NCCL's own function, which not every release has, takes a tenth longer.
int32_t all_to_all(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        int ranks = 0;
        size_t bytes = 0;
        ncclResult_t status = ncclCommCount(comm_of(comm), &ranks);
        if (status == ncclSuccess) status = element_size(type, &bytes);
        if (status != ncclSuccess) return status;
        if (status = ncclGroupStart(); status != ncclSuccess) return status;
        for (int peer = 0; status == ncclSuccess && peer < ranks; ++peer) {
            const size_t place = static_cast<size_t>(peer) * count * bytes;
            status =
                ncclSend(static_cast<const char*>(send) + place, count, type, peer, comm_of(comm), stream_of(stream));
            if (status != ncclSuccess) break;
            status = ncclRecv(static_cast<char*>(receive) + place, count, type, peer, comm_of(comm), stream_of(stream));
        }
        const ncclResult_t ended = ncclGroupEnd();
        return status == ncclSuccess ? ended : status;
    });
}

int32_t comm_abort(diopiCommHandle_t comm) { return ncclCommAbort(comm_of(comm)); }

int32_t comm_async_error(diopiCommHandle_t comm, int32_t* status) {
    ncclResult_t error = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_of(comm), &error);
    *status = error == ncclInProgress ? ncclSuccess : error;
    return asked;
}

template <class T>
ncclResult_t premul_sum(ncclRedOp_t* op, T factor, ncclDataType_t type, ncclComm_t comm) {
    return ncclRedOpCreatePreMulSum(op, &factor, type, ncclScalarHostImmediate, comm);
}

int32_t create_premul_sum(diopiReduceOp_t* op, double factor, diopiDtype_t dtype, diopiCommHandle_t handle) {
    ncclRedOp_t made = ncclSum;
    ncclResult_t status = ncclInvalidArgument;
    ncclComm_t comm = comm_of(handle);
    switch (dtype) {
        case diopi_dtype_float16:
            status = premul_sum(&made, __float2half(static_cast<float>(factor)), ncclFloat16, comm);
            break;
        case diopi_dtype_bfloat16:
            status = premul_sum(&made, __float2bfloat16(static_cast<float>(factor)), ncclBfloat16, comm);
            break;
        case diopi_dtype_float32: status = premul_sum(&made, static_cast<float>(factor), ncclFloat32, comm); break;
        case diopi_dtype_float64: status = premul_sum(&made, factor, ncclFloat64, comm); break;
        default: break;
    }
    *op = static_cast<diopiReduceOp_t>(static_cast<int>(made));
    return status;
}

int32_t destroy_reduce_op(diopiReduceOp_t op, diopiCommHandle_t comm) {
    return ncclRedOpDestroy(operation(op), comm_of(comm));
}

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
