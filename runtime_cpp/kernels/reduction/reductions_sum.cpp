#include "core/view.h"
#include "reduce.h"
#include "reductions.h"

namespace diopi::kernels {
namespace {

// Sums of floats and means differ in what they make of a sum only.
struct FloatSumFold : SumFold<double> {
    bool mean;
    template <class T>
    DIOPI_HD double step(double sum, T value) const {
        return sum + cast<double>(value);
    }
    DIOPI_HD double finish(double sum, int64_t count) const { return mean ? sum / static_cast<double>(count) : sum; }
};

}  // namespace

void reduce_sum(Context ctx, const TensorView& out, const TensorView& input, DimSet dims, bool mean) {
    dispatch_values<Any>(input, [&](auto values) {
        using T = ElementOf<decltype(values)>;
        if (is_float<T> || mean) {
            launch_fold<UsualFold<T>>(ctx, out, input, values, dims, FloatSumFold{{}, mean});
        } else if constexpr (!is_float<T>) {
            launch_fold<UsualFold<T>>(ctx, out, input, values, dims, SumFold<int64_t>{});
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
