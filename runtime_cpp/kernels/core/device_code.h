// Words for code whose size and registers matter on a GPU; a host's compiler needs none.
#pragma once

#include "host_device.h"

// Before a function that is called: inlined, its code would stand in a kernel once per call.
#if defined(__CUDACC__)
#define DIOPI_HD_CALLED __host__ __device__ __noinline__
#else
#define DIOPI_HD_CALLED
#endif

// Before a loop over an array that device code keeps in registers: its indices must be constants. Before a loop that is
// seldom run and need not cost code. Before one that waits for memory: the loads of a few passes are under way together.
#if defined(__CUDA_ARCH__)
#define DIOPI_UNROLL _Pragma("unroll")
#define DIOPI_KEEP_LOOP _Pragma("unroll 1")
#define DIOPI_UNROLL_LOADS _Pragma("unroll 4")
#else
#define DIOPI_UNROLL
#define DIOPI_UNROLL_LOADS
#define DIOPI_KEEP_LOOP
#endif
