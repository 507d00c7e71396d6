// Marks for code that g++ compiles for a CPU and nvcc for a GPU.
#ifndef DIOPI_KERNELS_CORE_HOST_DEVICE_H_
#define DIOPI_KERNELS_CORE_HOST_DEVICE_H_

#if defined(__CUDACC__)
#define DIOPI_HD __host__ __device__
// A body for launch::parallel_for. nvcc allows it inside a function template, not inside a generic lambda.
#define DIOPI_LAMBDA [=] __device__
#define DIOPI_FLATTEN
#else
#define DIOPI_HD
#define DIOPI_LAMBDA [=]
// A loop becomes vector code only where all that it calls is inlined, however large the function grows.
#define DIOPI_FLATTEN __attribute__((flatten))
#endif

#endif  // DIOPI_KERNELS_CORE_HOST_DEVICE_H_
