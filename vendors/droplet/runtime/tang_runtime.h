// The C interface of droplet, a simulated chip: devices, memory, streams, events and launches, in the manner of CUDA.
//
// Semantics that differ from CUDA, or that CUDA leaves open:
//  - A device pointer lies in an address window that nobody can read or write. Only code that "runs on the chip" may
//    touch device memory, through tangDeviceAddress(). A host access ends in a segmentation fault.
//  - The null stream is the default stream of the current device. It is an ordinary in-order stream: no stream waits for
//    another one without an event.
//  - Work runs inside the call that starts it, unless the setting DROPLET_ASYNC=1 gives each stream a worker thread.
//    A stream that gets a collective (tcl.h), or waits for work of one that has, gets one too.
//  - Copies from or to host memory that is not pinned are finished when the call returns, as CUDA's are.
//  - A launch that fails leaves its device in error: every later call that works on the device reports the failure until
//    tangDeviceReset().
// The settings (environment variables) are documented in settings.h.
#ifndef TANG_RUNTIME_H_
#define TANG_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define TANG_API __attribute__((visibility("default")))

#define TANG_VERSION 1

typedef enum {
    tangSuccess = 0,
    tangErrorInvalidValue = 1,
    tangErrorMemoryAllocation = 2,
    tangErrorInvalidDevice = 3,
    tangErrorInvalidHandle = 4,
    tangErrorNotReady = 5, /* not a failure: the work is still running */
    tangErrorLaunchFailure = 6,
    tangErrorInitialization = 7, /* a bad setting, no address space, or a forked process */
    tangErrorUnknown = 8,
    tangErrorStreamCapture = 9, /* what was asked for does not go with recording a stream */
    tangErrorRemote = 10, /* another rank of a communicator (tcl.h) has ended, or makes other calls */
    tangErrorAborted = 11 /* the communicator was aborted */
} tangError_t;

typedef enum {
    tangMemcpyHostToHost = 0,
    tangMemcpyHostToDevice = 1,
    tangMemcpyDeviceToHost = 2,
    tangMemcpyDeviceToDevice = 3,
    tangMemcpyDefault = 4 /* the direction follows from the pointers */
} tangMemcpyKind;

typedef enum { tangMemoryTypeUnregistered = 0, tangMemoryTypeHost = 1, tangMemoryTypeDevice = 2 } tangMemoryType;

enum { tangEventDefault = 0, tangEventDisableTiming = 2 };

typedef struct tangStream_st* tangStream_t;
typedef struct tangEvent_st* tangEvent_t;
typedef struct tangGraph_st* tangGraph_t;

typedef struct {
    char name[128];
    uint64_t total_memory; /* bytes */
    int32_t multi_processor_count;
    int32_t major;
    int32_t minor;
} tangDeviceProperties_t;

typedef struct {
    tangMemoryType type;
    int32_t device; /* -1 for host memory */
    void* base; /* the allocation that holds the pointer, or null */
    size_t allocation_bytes; /* its size, or 0 */
} tangPointerAttributes_t;

/* A kernel: it gets a copy of the argument block that was given to tangLaunch. */
typedef void (*tangKernel_t)(const void* args);

/* The indices [begin, end) of a loop that a kernel runs. */
typedef void (*tangRange_t)(const void* args, int64_t begin, int64_t end);

/* errors */
TANG_API tangError_t tangGetLastError(void); /* of this thread; resets it */
TANG_API tangError_t tangPeekAtLastError(void);
TANG_API const char* tangGetErrorString(tangError_t error);
TANG_API const char* tangGetLastErrorMessage(void); /* of this thread: what failed and what to do */

/* devices */
TANG_API tangError_t tangGetDeviceCount(int32_t* count);
TANG_API tangError_t tangSetDevice(int32_t device); /* of this thread */
TANG_API tangError_t tangGetDevice(int32_t* device);
TANG_API tangError_t tangGetDeviceProperties(tangDeviceProperties_t* properties, int32_t device);
TANG_API tangError_t tangMemGetInfo(size_t* free_bytes, size_t* total_bytes);
TANG_API tangError_t tangDeviceSynchronize(void);
TANG_API tangError_t tangDeviceReset(void); /* waits for the current device and clears its error; memory is kept */
TANG_API tangError_t tangIsAsync(int32_t* async);

/* Replaces the faults on demand by `plan`, in the form of DROPLET_FAULT; "" ends them. Counting starts anew. */
TANG_API tangError_t tangSetFaultPlan(const char* plan);

/* memory */
TANG_API tangError_t tangMalloc(void** pointer, size_t bytes); /* 512-byte aligned; 0 bytes give a null pointer */
TANG_API tangError_t tangFree(void* pointer); /* waits for the pointer's device */
TANG_API tangError_t tangHostAlloc(void** pointer, size_t bytes);
TANG_API tangError_t tangFreeHost(void* pointer);
TANG_API tangError_t tangPointerGetAttributes(tangPointerAttributes_t* attributes, const void* pointer);
TANG_API tangError_t tangMemcpy(void* dst, const void* src, size_t bytes, tangMemcpyKind kind);
TANG_API tangError_t tangMemcpyAsync(void* dst, const void* src, size_t bytes, tangMemcpyKind kind,
                                     tangStream_t stream);
TANG_API tangError_t tangMemcpyPeerAsync(void* dst, int32_t dst_device, const void* src, int32_t src_device,
                                         size_t bytes, tangStream_t stream);
TANG_API tangError_t tangMemsetAsync(void* dst, int32_t value, size_t bytes, tangStream_t stream);

/* streams */
TANG_API tangError_t tangStreamCreate(tangStream_t* stream);
TANG_API tangError_t tangStreamCreateWithPriority(tangStream_t* stream, uint32_t flags, int32_t priority);
TANG_API tangError_t tangDeviceGetStreamPriorityRange(int32_t* least,
                                                      int32_t* greatest); /* greatest is the smaller number */
TANG_API tangError_t tangStreamGetPriority(tangStream_t stream, int32_t* priority);
TANG_API tangError_t tangStreamDestroy(tangStream_t stream); /* after the work that it holds */
TANG_API tangError_t tangStreamSynchronize(tangStream_t stream);
TANG_API tangError_t tangStreamQuery(tangStream_t stream); /* tangSuccess or tangErrorNotReady */
TANG_API tangError_t tangStreamWaitEvent(tangStream_t stream, tangEvent_t event, uint32_t flags);

/* graphs: between begin and end the stream's launches, copies and fills are recorded instead of done. Waiting for the stream,
   its events, and copies from or to host memory that is not pinned cannot be done again: they fail, and so does the end. */
TANG_API tangError_t tangStreamBeginCapture(tangStream_t stream);
TANG_API tangError_t tangStreamEndCapture(tangStream_t stream, tangGraph_t* graph);
TANG_API tangError_t tangStreamIsCapturing(tangStream_t stream, bool* yes);
TANG_API tangError_t tangGraphLaunch(tangGraph_t graph, tangStream_t stream); /* on any stream of the same device */
TANG_API tangError_t tangGraphDestroy(tangGraph_t graph); /* the work that it has put on streams goes on */

/* Runs kernel(args) on the stream's device. Up to 448 bytes of arguments are copied without an allocation. */
TANG_API tangError_t tangLaunch(tangStream_t stream, tangKernel_t kernel, const void* args, size_t bytes);

/* For code that runs on the chip: calls range(args, begin, end) for ranges that together are [0, n), on as many threads as
   DROPLET_THREADS says, and returns when all have returned. What a range throws is thrown here. `nanoseconds` is about what
   an index takes, 0 where nobody knows: it is found out then. */
TANG_API void tangForRanges(int64_t n, int64_t nanoseconds, tangRange_t range, const void* args);

/* events */
TANG_API tangError_t tangEventCreateWithFlags(tangEvent_t* event, uint32_t flags);
TANG_API tangError_t tangEventDestroy(tangEvent_t event);
TANG_API tangError_t tangEventRecord(tangEvent_t event, tangStream_t stream);
TANG_API tangError_t tangEventQuery(tangEvent_t event); /* tangSuccess or tangErrorNotReady */
TANG_API tangError_t tangEventSynchronize(tangEvent_t event);
TANG_API tangError_t tangEventElapsedTime(float* milliseconds, tangEvent_t start, tangEvent_t end);

/* Where the two address windows lie. Written once, by the call that starts the chip; everybody else only reads. */
typedef struct {
    uintptr_t base; /* the first address of the window that device pointers lie in */
    size_t span; /* bytes; 0 until the chip is started */
    ptrdiff_t delta; /* what leads from a device pointer to the memory behind it */
} tangWindows_t;
extern TANG_API tangWindows_t tangWindows;

/* The address at which a kernel reaches `pointer`; what is not a device pointer stays as it is. */
static inline void* tangDeviceAddress(const void* pointer) {
    const uintptr_t address = (uintptr_t)pointer;
    return (void*)(address - tangWindows.base < tangWindows.span ? address + (uintptr_t)tangWindows.delta : address);
}

/* The device pointer whose kernel address is `address`; what is none stays as it is. */
static inline void* tangDevicePointer(const void* address) {
    const uintptr_t pointer = (uintptr_t)address - (uintptr_t)tangWindows.delta;
    return (void*)(pointer - tangWindows.base < tangWindows.span ? pointer : (uintptr_t)address);
}

#if defined(__cplusplus)
}
#endif
#endif
