// CUDA's side of the table of collectives: NCCL.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <diopi/diopirt_ext.h>
#include <nccl.h>

#include <optional>

#define DIOPI_COLLECTIVES(name) nccl##name

namespace {

using Status = ncclResult_t;
using Comm = ncclComm_t;
using UniqueId = ncclUniqueId;
using DataType = ncclDataType_t;
using Operation = ncclRedOp_t;
using Stream = cudaStream_t;

constexpr Status kDone = ncclSuccess;

bool is_failure(Status status) { return status != ncclSuccess && status != ncclInProgress; }

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

}  // namespace

#include "device/collectives.h"

namespace {

// Messages in a group, as PyTorch has them: NCCL's own function, which not every release has, takes a tenth longer.
int32_t all_to_all(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](ncclDataType_t type) {
        int ranks = 0;
        const auto bytes = static_cast<size_t>(diopiDtypeBytes(dtype));
        ncclResult_t status = ncclCommCount(comm_of(comm), &ranks);
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

}  // namespace
