// What the portable kernels are compiled against: grids of threads, and what NVIDIA's libraries do better.
#pragma once

#include "launch/cuda.h"
#include "launch/library_attention.h"
#include "launch/library_convolution.h"
#include "launch/library_product.h"
#include "launch/library_sort.h"

#if defined(DIOPI_CUDA_HAS_FRONTEND)  // cuDNN's frontend was there when the vendor was built
#define DIOPI_LAUNCHER_HAS_ATTENTION
#define DIOPI_LAUNCHER_HAS_CONVOLUTIONS
#endif
#define DIOPI_LAUNCHER_HAS_BIASED_PRODUCTS
#define DIOPI_LAUNCHER_HAS_SUMMED_PRODUCTS
#define DIOPI_LAUNCHER_HAS_SORTS
#define DIOPI_LAUNCHER_HAS_SOLVER
