// Largest and smallest elements, with or without their positions. NaN wins, as in torch.
#include <diopi/diopirt.h>

#include "core/reduce.h"
#include "core/reductions.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Outputs are rarely neighbours: the smallest element is one of all only, and integers are seldom reduced in bulk.
template <bool largest>
diopiError_t extremum(Context ctx, Tensor out, ConstTensor input, diopiSize_t dim) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), x = required_view(input, "input");
        require(x.numel > 0 || result.numel == 0, "the largest or smallest of no elements is not defined");
        dispatch<Number>(x.dtype == diopi_dtype_bool ? diopi_dtype_uint8 : x.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            using Forms = FoldForms<kLanes, kFewLanes, largest && is_float<T>>;
            launch_fold<T, Forms>(ctx, result, x, dim_set(dim, x.ndim), ExtremumFold<T, largest>{});
        });
    });
}

diopiError_t with_positions(Context ctx, Tensor values, Tensor indices, ConstTensor input, int64_t dim, bool largest) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_positions(ctx, required_view(values, "values"), required_view(indices, "indices"), x,
                         dim_set(&dim, x.ndim), largest);
    });
}


diopiError_t argument(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool largest) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_positions(ctx, undefined_view(), required_view(out, "out"), x, dim_set(dim, x.ndim), largest);
    });
}

}  // namespace

diopiError_t diopiMax(Context ctx, Tensor max, Tensor max_indices, ConstTensor input, int64_t dim) {
    return with_positions(ctx, max, max_indices, input, dim, true);
}

diopiError_t diopiMin(Context ctx, Tensor min, Tensor min_indices, ConstTensor input, int64_t dim) {
    return with_positions(ctx, min, min_indices, input, dim, false);
}

diopiError_t diopiMaxAll(Context ctx, Tensor max, ConstTensor input) { return extremum<true>(ctx, max, input, {}); }

diopiError_t diopiMinAll(Context ctx, Tensor min, ConstTensor input) { return extremum<false>(ctx, min, input, {}); }

diopiError_t diopiAmax(Context ctx, Tensor out, ConstTensor self, diopiSize_t dim, bool) {
    return extremum<true>(ctx, out, self, dim);
}

diopiError_t diopiArgmax(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool) {
    return argument(ctx, out, input, dim, true);
}

diopiError_t diopiArgmin(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool) {
    return argument(ctx, out, input, dim, false);
}

}  // namespace impl::portable
