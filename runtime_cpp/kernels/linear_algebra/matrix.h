// Matrix products of views: any strides, any float dtype, batches that broadcast; the work itself is launch::gemm's.
#pragma once

#include <diopi/diopirt.h>

#include "core/tensor.h"
#include "core/view.h"
#include "space/index.h"

namespace diopi::kernels {

// out[..., m, n] = alpha * a[..., m, k] b[..., k, n] + beta * out. The leading dimensions of a and b broadcast to those
// of out. float16 and bfloat16 are computed in float32 and rounded once; integers wrap around, as torch's do.
void multiply(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b, double alpha, double beta);

// out = a b + bias, which broadcasts to out.
void multiply_and_add(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b,
                      const TensorView& bias);

// out = a b of two matrices, and sums[i] = the sum of row i of a.
void multiply_and_sum(Context ctx, const TensorView& out, const TensorView& sums, const TensorView& a,
                      const TensorView& b);

// multiply() for an out with fewer batches than the product has: those that out does not tell apart are summed up.
void multiply_and_reduce(Context ctx, const TensorView& out, const TensorView& a, const TensorView& b);

// sums[j] = the sum of all elements at position j of dimension `dim`.
void sum_around(Context ctx, const TensorView& sums, const TensorView& tensor, int dim);

// The batch dimensions of matrices as an index space with the strides of each; they broadcast to those of the first.
template <int N>
Space<N> batches_of(const TensorView (&matrices)[N]) {
    TensorView batches[N];
    for (int n = 0; n < N; ++n) {
        batches[n] = matrices[n];
        batches[n].ndim -= 2;
        recounted(batches[n]);
    }
    return broadcast_space<N>(batches[0], batches);
}

// What sums of products of `dtype` are kept in: float64 for float64, else float32.
diopiDtype_t product_dtype(diopiDtype_t dtype);

}  // namespace diopi::kernels
