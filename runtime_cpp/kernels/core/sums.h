// Results that are summed up in place: halves in a wider copy, so that partial sums are not rounded.
#ifndef DIOPI_KERNELS_CORE_SUMS_H_
#define DIOPI_KERNELS_CORE_SUMS_H_

#include "copy.h"
#include "slices.h"

namespace diopi::kernels {

// Calls add(sums) with `result` itself or a temporary in its place, of sum_dtype(); it must write every element.
template <class F>
void summed_up(Context ctx, TensorView result, F&& add) {
    const diopiDtype_t dtype = sum_dtype(result.dtype);
    const bool in_place = result.dtype == dtype;
    const TensorView sums = in_place ? result : temporary_like(ctx, result, dtype);
    add(sums);
    if (!in_place) copy_elements(ctx, result, sums);
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_SUMS_H_
