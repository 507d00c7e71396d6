// Conversion of a strided run of elements from one dtype to another, chosen at run time.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

namespace diopi::kernels {

// Strides in elements; the runs do not overlap unless they are the same.
using ConvertRun = void (*)(const void* source, int64_t source_stride, void* target, int64_t target_stride,
                            int64_t count);

// For each pair of Storable dtypes; others fail with diopiDtypeNotSupported. Host code that runs as device code on chips
// that are simulated: GPUs convert element by element instead.
ConvertRun converter(diopiDtype_t from, diopiDtype_t to);

}  // namespace diopi::kernels
