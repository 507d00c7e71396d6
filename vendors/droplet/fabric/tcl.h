// The collectives of droplet: its chips of one host as ranks that exchange memory, in the manner of NCCL.
//
//  - Calls put work on a stream and return; a stream that has such work runs asynchronously from then on, whatever
//    DROPLET_ASYNC says, as no rank may wait inside of a call for another one that waits for it.
//  - Ranks are threads or processes of one user on one host: they share memory that no file system names, and that goes
//    with them. Network namespaces count as hosts.
//  - What fails in launched work does not put the device in error, but the communicator: see tclCommGetAsyncError.
#ifndef TCL_H_
#define TCL_H_

#include "runtime/tang_runtime.h"

#if defined(__cplusplus)
extern "C" {
#endif

enum { TCL_UNIQUE_ID_BYTES = 64 };

typedef struct {
    char bytes[TCL_UNIQUE_ID_BYTES];
} tclUniqueId_t;

typedef struct tclComm_st* tclComm_t;

typedef enum {
    tclInt8 = 0,
    tclUint8 = 1,
    tclInt16 = 2,
    tclUint16 = 3,
    tclInt32 = 4,
    tclUint32 = 5,
    tclInt64 = 6,
    tclUint64 = 7,
    tclFloat16 = 8,
    tclFloat32 = 9,
    tclFloat64 = 10,
    tclBfloat16 = 11
} tclDataType_t;

typedef enum { tclSum = 0, tclProd = 1, tclMax = 2, tclMin = 3, tclAvg = 4 } tclRedOp_t;

TANG_API tangError_t tclGetUniqueId(tclUniqueId_t* id); /* by a process that is one of the ranks */
TANG_API int32_t tclCommCanJoin(tclUniqueId_t id); /* not 0 on the host of the process that made the identifier */
TANG_API tangError_t tclCommInitRank(tclComm_t* comm, int32_t ranks, tclUniqueId_t id, int32_t rank);
TANG_API tangError_t tclCommDestroy(tclComm_t comm); /* after its work */
TANG_API tangError_t tclCommAbort(tclComm_t comm); /* its work ends at once, and leaves nothing of use */
TANG_API tangError_t tclCommGetAsyncError(tclComm_t comm, tangError_t* error);
TANG_API const char* tclGetLastError(tclComm_t comm); /* why the communicator failed; of this thread for a null one */

/* An operation that adds the ranks' values, each times the factor; not of whole numbers. */
TANG_API tangError_t tclRedOpCreatePreMulSum(int32_t* op, double factor, tclComm_t comm);
TANG_API tangError_t tclRedOpDestroy(int32_t op, tclComm_t comm);

/* `op` is a tclRedOp_t, or of tclRedOpCreatePreMulSum */
TANG_API tangError_t tclAllReduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op,
                                  tclComm_t comm, tangStream_t stream);
TANG_API tangError_t tclReduce(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op,
                               int32_t root, tclComm_t comm, tangStream_t stream);
TANG_API tangError_t tclReduceScatter(const void* send, void* receive, size_t count, tclDataType_t type, int32_t op,
                                      tclComm_t comm, tangStream_t stream); /* count: of the receiver */
TANG_API tangError_t tclBroadcast(const void* send, void* receive, size_t count, tclDataType_t type, int32_t root,
                                  tclComm_t comm, tangStream_t stream);
TANG_API tangError_t tclAllGather(const void* send, void* receive, size_t count, tclDataType_t type, tclComm_t comm,
                                  tangStream_t stream); /* count: of the sender */
TANG_API tangError_t tclAllToAll(const void* send, void* receive, size_t count, tclDataType_t type, tclComm_t comm,
                                 tangStream_t stream); /* count: of a part */
TANG_API tangError_t tclSend(const void* send, size_t count, tclDataType_t type, int32_t peer, tclComm_t comm,
                             tangStream_t stream);
TANG_API tangError_t tclRecv(void* receive, size_t count, tclDataType_t type, int32_t peer, tclComm_t comm,
                             tangStream_t stream);
TANG_API tangError_t tclGroupStart(void); /* of this thread */
TANG_API tangError_t tclGroupEnd(void);

#if defined(__cplusplus)
}
#endif
#endif
