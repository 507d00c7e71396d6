// The vendor's launcher, chosen when the kernels are compiled; plain host loops when none is named.
#pragma once

#if defined(DIOPI_LAUNCHER_HEADER)
#include DIOPI_LAUNCHER_HEADER
#elif defined(__CUDACC__)
#include "launch/cuda.h"
#else
#include "launch/host.h"
#endif
