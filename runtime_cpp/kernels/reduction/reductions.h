// Reductions that several kernels share, each compiled once.
#pragma once

#include "core/tensor.h"
#include "reduction_space.h"

namespace diopi::kernels {

struct ReducedOperands {
    TensorView out, input;
    DimSet dims;
};

// Calls reduce(operands); dims are as of dim_set().
template <class Dims, class Reduce>
diopiError_t over_dims(Tensor out, ConstTensor input, const Dims& dims, Reduce&& reduce) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce(ReducedOperands{required_view(out, "out"), x, dim_set(dims, x.ndim)});
    });
}

// The sums or means over `dims`; `out` keeps them with size one, or leaves them out.
void reduce_sum(Context ctx, const TensorView& out, const TensorView& input, DimSet dims, bool mean = false);

// `wide` has the shape that `out` broadcasts to: what became of one element is summed up.
void sum_where_broadcast(Context ctx, const TensorView& out, const TensorView& wide);

// Whether any or all of the elements are true.
void reduce_truth(Context ctx, const TensorView& out, const TensorView& input, DimSet dims, bool all);

// The largest or smallest element over `dims`, and its place among those. NaN wins, as in torch; `values` may be
// undefined.
void reduce_positions(Context ctx, const TensorView& values, const TensorView& indices, const TensorView& input,
                      DimSet dims, bool largest);

}  // namespace diopi::kernels
