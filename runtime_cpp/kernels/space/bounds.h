// Checks of index tensors before they are used.
#pragma once

#include <diopi/diopirt.h>

#include <cassert>
#include <cstdint>

#include "core/launcher.h"
#include "core/tensor.h"

namespace diopi::kernels {

// Which indices a dimension of n elements takes: [0, n), or [-n, n) with the negative ones counted from the end.
enum class Negative { refused, from_the_end };

// Fails with the first index that is out of range. It waits for the result where launch::kSynchronous says that this is
// cheap. On a GPU the wait would cost more than the operator: there such an index ends the kernel that finds it, and with
// it the process's use of the device, as torch's own kernels do.
void require_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative);

// The same for a kernel that itself reads each index with in_bounds.
inline void require_known_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative) {
    if (launch::kSynchronous) require_in_bounds(ctx, index, size, dim, negative);
}
DIOPI_HD inline int64_t in_bounds(int64_t index, [[maybe_unused]] int64_t low, [[maybe_unused]] int64_t high) {
#ifdef __CUDA_ARCH__
    if (index < low || index >= high) __assert_fail("an index is out of bounds", __FILE__, __LINE__, __func__);
#endif
    return index;
}

// An index tensor as int64 or int32; fails on any other dtype.
void require_index_dtype(const TensorView& index);

}  // namespace diopi::kernels
