// Checks of index tensors before they are used.
#ifndef DIOPI_KERNELS_CORE_BOUNDS_H_
#define DIOPI_KERNELS_CORE_BOUNDS_H_

#include <diopi/diopirt.h>

#include <cstdint>

#include "tensor.h"

namespace diopi::kernels {

// Which indices a dimension of n elements takes: [0, n), or [-n, n) with the negative ones counted from the end.
enum class Negative { refused, from_the_end };

// Fails with the first index that is out of range. It waits for the result, so it checks only where
// launch::kSynchronous says that this is cheap: on a GPU the wait would cost more than the operator.
void require_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative);

// An index tensor as int64 or int32; fails on any other dtype.
void require_index_dtype(const TensorView& index);

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_BOUNDS_H_
