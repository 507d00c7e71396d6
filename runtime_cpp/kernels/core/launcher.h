// The vendor's launcher, chosen when the kernels are compiled; plain host loops when none is named.
#ifndef DIOPI_KERNELS_CORE_LAUNCHER_H_
#define DIOPI_KERNELS_CORE_LAUNCHER_H_

#if defined(DIOPI_LAUNCHER_HEADER)
#include DIOPI_LAUNCHER_HEADER
#elif defined(__CUDACC__)
#include "../launch/cuda.h"
#else
#include "../launch/host.h"
#endif

#endif  // DIOPI_KERNELS_CORE_LAUNCHER_H_
