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

// Before a loop whose steps do not depend on one another, even where the output is one of the inputs: it must become vector
// code on every host, of which tests/cpp/test_vector_loops.py asks the compilers.
#if defined(__CUDACC__)
#define DIOPI_VECTOR_LOOP
#elif defined(__clang__)
#define DIOPI_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define DIOPI_VECTOR_LOOP _Pragma("GCC ivdep")
#endif
