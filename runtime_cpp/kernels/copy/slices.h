// Slices of a tensor that lie at listed offsets: what indexing by tensors comes down to, whatever its form.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/tensor.h"

namespace diopi::kernels {

// Slice i starts `offsets[i]` elements after `first`, and has the shape and strides of `first`.
struct Slices {
    TensorView first;
    const int64_t* offsets;  // on the device
    int64_t count;
};

// The slices of dimension `dim` at the positions in `index` (one dimension, or none for a single slice). Fails with the
// first position out of range; negative ones count from the end where `from_the_end` says so.
Slices slices_at(Context ctx, const TensorView& tensor, int dim, const TensorView& index, bool from_the_end);

// In each of these, dimension `dim` of `list` counts the slices and the others are the slices' own. Dtypes are equal.
void take(diopiStreamHandle_t stream, const TensorView& list, int dim, const Slices& slices);
void put(diopiStreamHandle_t stream, const Slices& slices, const TensorView& list, int dim);
// Each element adds up its slices in the order of the list, so that results do not depend on timing.
void accumulate(Context ctx, const Slices& slices, const TensorView& list, int dim);

// Where sums into `tensor` are kept: float32 for float16 and bfloat16, which would round each partial sum.
diopiDtype_t sum_dtype(diopiDtype_t dtype);

// offsets[i] += stride * index[i], or = at the first; an index is at least `low`, and counts from the end of `size` if
// negative.
void add_offsets(diopiStreamHandle_t stream, int64_t* offsets, const TensorView& index, int64_t size, int64_t stride,
                 int64_t low, bool first);

}  // namespace diopi::kernels
