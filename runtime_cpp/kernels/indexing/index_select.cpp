// Positions of one dimension: index_select with its gradient, and index_fill.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "copy/slices.h"
#include "copy/sums.h"
#include "core/scalar.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

void fill_positions(Context ctx, const TensorView& tensor, int64_t dim, const TensorView& index,
                    const TensorView& value) {
    require(value.numel == 1, "index_fill takes one value, got %lld", value.numel);
    const TensorView target = at_least_1d(tensor);
    const int at = normalized_dim(dim, target.ndim);
    const Slices slices = slices_at(ctx, target, at, index, true);
    TensorView list = target;
    list.data = converted(ctx, value, target.dtype).data;
    list.sizes[at] = slices.count;
    for (int d = 0; d < list.ndim; ++d) list.strides[d] = 0;
    put(stream_of(ctx), slices, recounted(list), at);
}

}  // namespace

diopiError_t diopiIndexSelect(Context ctx, Tensor out, ConstTensor input, int64_t dim, ConstTensor index) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(out, "out"));
        const TensorView source = at_least_1d(converted(ctx, required_view(input, "input"), result.dtype));
        const int at = normalized_dim(dim, source.ndim);
        take(stream_of(ctx), result, at, slices_at(ctx, source, at, required_view(index, "index"), false));
    });
}

diopiError_t diopiIndexSelectBackward(Context ctx, Tensor grad_input, ConstTensor grad, Sizes, int64_t dim,
                                      ConstTensor index) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(grad_input, "grad_input"));
        const int at = normalized_dim(dim, result.ndim);
        summed_up(ctx, result, [&](const TensorView& sums) {
            fill_zero(ctx, sums);
            accumulate(ctx, slices_at(ctx, sums, at, required_view(index, "index"), false),
                       converted(ctx, at_least_1d(required_view(grad, "grad")), sums.dtype), at);
        });
    });
}

diopiError_t diopiIndexFill(Context ctx, Tensor out, ConstTensor input, int64_t dim, ConstTensor index,
                            ConstTensor value) {
    return guarded([&] {
        copy_elements(ctx, required_view(out, "out"), required_view(input, "input"));
        fill_positions(ctx, view(out), dim, required_view(index, "index"), required_view(value, "value"));
    });
}

diopiError_t diopiIndexFillScalar(Context ctx, Tensor out, ConstTensor input, int64_t dim, ConstTensor index,
                                  const diopiScalar_t* value) {
    return guarded([&] {
        copy_elements(ctx, required_view(out, "out"), required_view(input, "input"));
        fill_positions(ctx, view(out), dim, required_view(index, "index"), scalar_tensor(ctx, value, view(out).dtype));
    });
}

diopiError_t diopiIndexFillInp(Context ctx, Tensor input, int64_t dim, ConstTensor index, ConstTensor value) {
    return guarded([&] {
        fill_positions(ctx, required_view(input, "input"), dim, required_view(index, "index"),
                       required_view(value, "value"));
    });
}

diopiError_t diopiIndexFillInpScalar(Context ctx, Tensor input, int64_t dim, ConstTensor index,
                                     const diopiScalar_t* value) {
    return guarded([&] {
        const TensorView target = required_view(input, "input");
        fill_positions(ctx, target, dim, required_view(index, "index"), scalar_tensor(ctx, value, target.dtype));
    });
}

}  // namespace impl::portable
