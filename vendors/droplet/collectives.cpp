// Droplet's side of the table of collectives, over its tcl* library.
#include <diopi/diopirt.h>

#include <optional>

#include "fabric/tcl.h"

#define DIOPI_COLLECTIVES(name) tcl##name
#define DIOPI_COLLECTIVES_CAN_JOIN(id) (tclCommCanJoin(id) != 0)

namespace {

using Status = tangError_t;
using Comm = tclComm_t;
using UniqueId = tclUniqueId_t;
using DataType = tclDataType_t;
using Operation = int32_t;
using Stream = tangStream_t;

constexpr Status kDone = tangSuccess;

bool is_failure(Status status) { return status != tangSuccess; }

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

}  // namespace

#include "device/collectives.h"

namespace {

int32_t all_to_all(const void* send, void* receive, uint64_t count, diopiDtype_t dtype, diopiCommHandle_t comm,
                   diopiStreamHandle_t stream) {
    return typed(dtype, [&](tclDataType_t type) {
        return tclAllToAll(send, receive, count, type, comm_of(comm), stream_of(stream));
    });
}

int32_t create_premul_sum(diopiReduceOp_t* op, double factor, diopiDtype_t, diopiCommHandle_t comm) {
    int32_t made = 0;
    const tangError_t status = tclRedOpCreatePreMulSum(&made, factor, comm_of(comm));
    *op = static_cast<diopiReduceOp_t>(made);
    return status;
}

}  // namespace
