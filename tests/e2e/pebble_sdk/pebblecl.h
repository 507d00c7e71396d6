/* The collectives of pebble's SDK: ranks are processes of one host, and a call returns when its part is done. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char bytes[64];
} pclUniqueId_t;
typedef struct pclComm_st* pclComm_t;
typedef void* pclStream_t;
typedef enum { pclSuccess = 0, pclInvalidArgument = 1, pclSystemError = 2, pclAborted = 3 } pclResult_t;
typedef enum { pclUint8 = 0, pclInt32 = 1, pclInt64 = 2, pclFloat32 = 3, pclFloat64 = 4 } pclDataType_t;
typedef enum { pclSum = 0, pclProd = 1, pclMax = 2, pclMin = 3, pclAvg = 4 } pclRedOp_t;

pclResult_t pclGetUniqueId(pclUniqueId_t* id);
pclResult_t pclCommInitRank(pclComm_t* comm, int ranks, pclUniqueId_t id, int rank);
pclResult_t pclCommDestroy(pclComm_t comm);
pclResult_t pclCommAbort(pclComm_t comm);
pclResult_t pclCommGetAsyncError(pclComm_t comm, pclResult_t* error);
const char* pclGetLastError(pclComm_t comm);
pclResult_t pclRedOpCreatePreMulSum(pclRedOp_t* op, double factor, pclComm_t comm);
pclResult_t pclRedOpDestroy(pclRedOp_t op, pclComm_t comm);
pclResult_t pclAllReduce(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op,
                         pclComm_t comm, pclStream_t stream);
pclResult_t pclReduce(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op, int root,
                      pclComm_t comm, pclStream_t stream);
pclResult_t pclReduceScatter(const void* send, void* receive, size_t count, pclDataType_t type, pclRedOp_t op,
                             pclComm_t comm, pclStream_t stream);
pclResult_t pclBroadcast(const void* send, void* receive, size_t count, pclDataType_t type, int root, pclComm_t comm,
                         pclStream_t stream);
pclResult_t pclAllGather(const void* send, void* receive, size_t count, pclDataType_t type, pclComm_t comm,
                         pclStream_t stream);
pclResult_t pclAllToAll(const void* send, void* receive, size_t count, pclDataType_t type, pclComm_t comm,
                        pclStream_t stream);
pclResult_t pclSend(const void* send, size_t count, pclDataType_t type, int peer, pclComm_t comm, pclStream_t stream);
pclResult_t pclRecv(void* receive, size_t count, pclDataType_t type, int peer, pclComm_t comm, pclStream_t stream);
pclResult_t pclGroupStart(void);
pclResult_t pclGroupEnd(void);

#ifdef __cplusplus
}
#endif
