#include "reduce.h"
#include "reductions.h"
#include "view.h"

namespace diopi::kernels {
namespace {

// Sums and means of floats differ in what they make of a sum only.
template <class T>
struct FloatSumFold : SumFold<T> {
    bool mean;
    DIOPI_HD double finish(double sum, int64_t count) const { return mean ? sum / static_cast<double>(count) : sum; }
};

}  // namespace

void reduce_sum(Context ctx, const TensorView& out, const TensorView& input, DimSet dims, bool mean) {
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (is_float<T>) {
            launch_fold<T>(ctx, out, input, dims, FloatSumFold<T>{{}, mean});
        } else if (mean) {
            launch_fold<T>(ctx, out, input, dims, MeanFold<T>{});
        } else {
            launch_fold<T>(ctx, out, input, dims, SumFold<T>{});
        }
    });
}

void sum_where_broadcast(Context ctx, const TensorView& out, const TensorView& wide) {
    TensorView kept = expanded_to(out, wide);
    const int lead = wide.ndim - out.ndim;
    DimSet repeated = 0;
    for (int d = 0; d < wide.ndim; ++d) {
        if (d >= lead && out.sizes[d - lead] == wide.sizes[d]) continue;
        kept.sizes[d] = 1;
        repeated |= 1u << d;
    }
    reduce_sum(ctx, recounted(kept), wide, repeated);
}

}  // namespace diopi::kernels
