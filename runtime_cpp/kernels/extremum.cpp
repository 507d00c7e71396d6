// Largest and smallest elements, with or without their positions. NaN wins, as in torch.
#include <diopi/diopirt.h>

#include "core/reduce.h"
#include "core/reductions.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The smallest element is one of all only, so that no outputs are neighbours.
template <class T, bool largest>
using ExtremumForms = FoldForms<kLanes, UsualFold<T>::kScattered, largest && UsualFold<T>::kColumns>;

template <bool largest>
void extremum(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, DimSet dims) {
    require(input.numel > 0 || out.numel == 0, "the largest or smallest of no elements is not defined");
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        launch_fold<T, ExtremumForms<T, largest>>(ctx, out, input, dims, ExtremumFold<T, largest>{});
    });
}

template <bool largest>
diopiError_t with_positions(diopiContextHandle_t ctx, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                            diopiConstTensorHandle_t input, int64_t dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_positions(ctx, required_view(values, "values"), required_view(indices, "indices"), x,
                         dim_set(&dim, x.ndim), largest);
    });
}

template <bool largest>
diopiError_t of_all(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        extremum<largest>(ctx, required_view(out, "out"), x, all_dims(x.ndim));
    });
}

template <bool largest>
diopiError_t argument(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        reduce_positions(ctx, undefined_view(), required_view(out, "out"), x, dim_set(dim, x.ndim), largest);
    });
}

}  // namespace

diopiError_t diopiMax(diopiContextHandle_t ctx, diopiTensorHandle_t max, diopiTensorHandle_t max_indices,
                      diopiConstTensorHandle_t input, int64_t dim) {
    return with_positions<true>(ctx, max, max_indices, input, dim);
}

diopiError_t diopiMin(diopiContextHandle_t ctx, diopiTensorHandle_t min, diopiTensorHandle_t min_indices,
                      diopiConstTensorHandle_t input, int64_t dim) {
    return with_positions<false>(ctx, min, min_indices, input, dim);
}

diopiError_t diopiMaxAll(diopiContextHandle_t ctx, diopiTensorHandle_t max, diopiConstTensorHandle_t input) {
    return of_all<true>(ctx, max, input);
}

diopiError_t diopiMinAll(diopiContextHandle_t ctx, diopiTensorHandle_t min, diopiConstTensorHandle_t input) {
    return of_all<false>(ctx, min, input);
}

diopiError_t diopiAmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t self,
                       diopiSize_t dim, bool) {
    return guarded([&] {
        const TensorView x = required_view(self, "self");
        extremum<true>(ctx, required_view(out, "out"), x, dim_set(dim, x.ndim));
    });
}

diopiError_t diopiArgmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool) {
    return argument<true>(ctx, out, input, dim);
}

diopiError_t diopiArgmin(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const int64_t* dim, bool) {
    return argument<false>(ctx, out, input, dim);
}

}  // namespace impl::portable
