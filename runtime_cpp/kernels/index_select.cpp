// Positions of one dimension: index_select with its gradient, and index_fill.
#include <diopi/diopirt.h>

#include "core/copy.h"
#include "core/scalar.h"
#include "core/slices.h"
#include "core/view.h"
#include "core/workspace.h"

namespace diopi::kernels {
namespace {

void fill_positions(diopiContextHandle_t ctx, const TensorView& tensor, int64_t dim, const TensorView& index,
                    const TensorView& value) {
    require(value.numel == 1, "index_fill takes one value, got %lld", static_cast<long long>(value.numel));
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
}  // namespace diopi::kernels

namespace impl {
namespace portable {

using namespace diopi::kernels;

diopiError_t diopiIndexSelect(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                              int64_t dim, diopiConstTensorHandle_t index) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(out, "out"));
        const TensorView source = at_least_1d(converted(ctx, required_view(input, "input"), result.dtype));
        const int at = normalized_dim(dim, source.ndim);
        take(stream_of(ctx), result, at, slices_at(ctx, source, at, required_view(index, "index"), false));
    });
}

diopiError_t diopiIndexSelectBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                      diopiConstTensorHandle_t grad, diopiSize_t, int64_t dim,
                                      diopiConstTensorHandle_t index) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(grad_input, "grad_input"));
        const diopiDtype_t dtype = sum_dtype(result.dtype);
        const TensorView sums = result.dtype == dtype ? result : temporary_like(ctx, result, dtype);
        const int at = normalized_dim(dim, result.ndim);
        fill_zero(ctx, sums);
        accumulate(stream_of(ctx), slices_at(ctx, sums, at, required_view(index, "index"), false),
                   converted(ctx, at_least_1d(required_view(grad, "grad")), dtype), at);
        copy_elements(ctx, result, sums);
    });
}

diopiError_t diopiIndexFill(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            int64_t dim, diopiConstTensorHandle_t index, diopiConstTensorHandle_t value) {
    return guarded([&] {
        copy_elements(ctx, required_view(out, "out"), required_view(input, "input"));
        fill_positions(ctx, view(out), dim, required_view(index, "index"), required_view(value, "value"));
    });
}

diopiError_t diopiIndexFillScalar(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  int64_t dim, diopiConstTensorHandle_t index, const diopiScalar_t* value) {
    return guarded([&] {
        copy_elements(ctx, required_view(out, "out"), required_view(input, "input"));
        fill_positions(ctx, view(out), dim, required_view(index, "index"), scalar_tensor(ctx, value, view(out).dtype));
    });
}

diopiError_t diopiIndexFillInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, int64_t dim,
                               diopiConstTensorHandle_t index, diopiConstTensorHandle_t value) {
    return guarded([&] {
        fill_positions(ctx, required_view(input, "input"), dim, required_view(index, "index"),
                       required_view(value, "value"));
    });
}

diopiError_t diopiIndexFillInpScalar(diopiContextHandle_t ctx, diopiTensorHandle_t input, int64_t dim,
                                     diopiConstTensorHandle_t index, const diopiScalar_t* value) {
    return guarded([&] {
        const TensorView target = required_view(input, "input");
        fill_positions(ctx, target, dim, required_view(index, "index"), scalar_tensor(ctx, value, target.dtype));
    });
}

}  // namespace portable
}  // namespace impl
