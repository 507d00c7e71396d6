// Largest and smallest elements, with or without their positions. NaN wins, as in torch.
#include <diopi/diopirt.h>

#include "reduce.h"
#include "reductions.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Outputs are rarely neighbours: the smallest element is one of all only, and integers are seldom reduced in bulk.
diopiError_t extremum(Context ctx, Tensor out, ConstTensor input, Sizes dim, bool largest) {
    return over_dims(out, input, dim, [&](const ReducedOperands& of) {
        require(of.input.numel > 0 || of.out.numel == 0, "the largest or smallest of no elements is not defined");
        TensorView numbers = of.input;
        if (numbers.dtype == diopi_dtype_bool) numbers.dtype = diopi_dtype_uint8;
        dispatch_values<Number>(numbers, [&](auto values) {
            with_flag(largest, [&](auto flag) {
                using T = ElementOf<decltype(values)>;
                constexpr bool in_columns = std::is_same_v<decltype(flag), std::true_type> && is_float<T>;
                using Forms = FoldForms<kLanes, kFewLanes, in_columns>;
                launch_fold<Forms>(ctx, of.out, of.input, values, of.dims, ExtremumFold<T, decltype(flag)>{flag});
            });
        });
    });
}

diopiError_t with_positions(Context ctx, Tensor values, Tensor indices, ConstTensor input, int64_t dim, bool largest) {
    return over_dims(indices, input, &dim, [&](const ReducedOperands& of) {
        reduce_positions(ctx, required_view(values, "values"), of.out, of.input, of.dims, largest);
    });
}

diopiError_t argument(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool largest) {
    return over_dims(out, input, dim, [&](const ReducedOperands& of) {
        reduce_positions(ctx, undefined_view(), of.out, of.input, of.dims, largest);
    });
}

}  // namespace

diopiError_t diopiMax(Context ctx, Tensor max, Tensor max_indices, ConstTensor input, int64_t dim) {
    return with_positions(ctx, max, max_indices, input, dim, true);
}

diopiError_t diopiMin(Context ctx, Tensor min, Tensor min_indices, ConstTensor input, int64_t dim) {
    return with_positions(ctx, min, min_indices, input, dim, false);
}

diopiError_t diopiMaxAll(Context ctx, Tensor max, ConstTensor input) { return extremum(ctx, max, input, {}, true); }

diopiError_t diopiMinAll(Context ctx, Tensor min, ConstTensor input) { return extremum(ctx, min, input, {}, false); }

diopiError_t diopiAmax(Context ctx, Tensor out, ConstTensor self, Sizes dim, bool) {
    return extremum(ctx, out, self, dim, true);
}

diopiError_t diopiArgmax(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool) {
    return argument(ctx, out, input, dim, true);
}

diopiError_t diopiArgmin(Context ctx, Tensor out, ConstTensor input, const int64_t* dim, bool) {
    return argument(ctx, out, input, dim, false);
}

}  // namespace impl::portable
