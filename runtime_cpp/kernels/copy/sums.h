// Results that are summed up in place: halves in a wider copy, so that partial sums are not rounded.
#pragma once

#include "common_dtype.h"

namespace diopi::kernels {

// Calls add(sums) with `result` itself or a temporary in its place, of sum_dtype(); it must write every element.
template <class F>
void summed_up(Context ctx, const TensorView& result, F&& add) {
    with_dtype<1>(ctx, {result}, 1, sum_dtype(result.dtype), Layout::any, [&](const auto& sums) { add(sums[0]); });
}

}  // namespace diopi::kernels
