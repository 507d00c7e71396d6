// Marks for code that g++ compiles for a CPU and nvcc for a GPU.
#pragma once

#if defined(__CUDACC__)
#define DIOPI_HD __host__ __device__
// A body for launch::parallel_for. nvcc allows it inside a function template, not inside a generic lambda.
#define DIOPI_LAMBDA [=] __device__
#define DIOPI_FLATTEN
#define DIOPI_HD_INLINED __host__ __device__ __forceinline__
#define DIOPI_HD_OUTLINED __host__ __device__ __noinline__
#else
#define DIOPI_HD
#define DIOPI_LAMBDA [=]
// A loop becomes vector code only where all that it calls is inlined, however large the function grows.
#define DIOPI_FLATTEN __attribute__((flatten))
// For a function that takes the body of such a loop.
#define DIOPI_HD_INLINED __attribute__((always_inline)) inline
// For a function that is called once per row or less: inlined, it would only add code to many loops.
#define DIOPI_HD_OUTLINED __attribute__((noinline))
#endif

// Before a loop over elements that do not depend on each other. clang knows no such promise without an order to vectorize,
// which fails the build where it cannot; it compares addresses at run time.
#if defined(__clang__)
#define DIOPI_IVDEP
#else
#define DIOPI_IVDEP _Pragma("GCC ivdep")
#endif
