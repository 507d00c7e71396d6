#include <limits>

#include "core/unit.h"
#include "reduce.h"
#include "reductions.h"

namespace diopi::kernels {
namespace {

// An element is true where it has a bit of `mask`, which leaves out the sign of floats. U: as of dispatch_unit().
template <class U>
struct TruthFold {
    using State = U;  // nonzero once the answer is found
    U mask;
    bool all;
    DIOPI_HD State start() const { return 0; }
    DIOPI_HD State step(State found, U value) const { return found | static_cast<U>(((value & mask) == 0) == all); }
    DIOPI_HD State join(State a, State b) const { return a | b; }
    DIOPI_HD bool finish(State found, int64_t) const { return (found != 0) != all; }
};

}  // namespace

void reduce_truth(Context ctx, const TensorView& out, const TensorView& input, DimSet dims, bool all) {
    if (!is_in<Any>(input.dtype)) fail_dtype(input.dtype);
    dispatch_unit(input.dtype, [&](auto unit) {
        using U = typename decltype(unit)::plain;
        const U every = std::numeric_limits<U>::max();
        const U mask = is_float_dtype(input.dtype) ? every >> 1 : every;
        launch_fold<DenseFold>(ctx, out, input, static_cast<const U*>(input.data), dims, TruthFold<U>{mask, all});
    });
}

}  // namespace diopi::kernels
