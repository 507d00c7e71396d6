// Parts of a tensor along one dimension: copied out, written back, and their gradients.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Python's rules: a negative position counts from the end, positions beyond an end are cut off there.
TensorView slice_of(const TensorView& tensor, int64_t dim, int64_t start, int64_t end, int64_t step) {
    require(step > 0, "the step of a slice must be positive, got %lld", step);
    const int at = normalized_dim(dim, tensor.ndim);
    const int64_t size = tensor.sizes[at];
    const auto position = [size](int64_t value) {
        const int64_t from_start = value < 0 ? value + size : value;
        return from_start < 0 ? int64_t{0} : from_start > size ? size : from_start;
    };
    const int64_t first = position(start), last = position(end);
    return narrowed(tensor, at, first, last <= first ? 0 : (last - first - 1) / step + 1, step);
}

TensorView select_of(const TensorView& tensor, int64_t dim, int64_t index) {
    const int at = normalized_dim(dim, tensor.ndim);
    require(tensor.ndim > 0, "a 0-d tensor has no dimension to select from");
    const int64_t size = tensor.sizes[at];
    require(index >= -size && index < size, "index %lld is out of bounds for dimension %d with size %lld", index, at,
            size);
    return selected(tensor, at, index < 0 ? index + size : index);
}

// The shapes must be equal: a part is never broadcast.
void copy_part(Context ctx, const TensorView& to, const TensorView& from) {
    require_same_sizes(to, from, "out", "src");
    copy_elements(ctx, to, from);
}

}  // namespace

diopiError_t diopiSlice(Context ctx, Tensor null_out, ConstTensor input, int64_t dim, int64_t start, int64_t end,
                        int64_t step) {
    return guarded([&] {
        copy_part(ctx, required_view(null_out, "null_out"),
                  slice_of(required_view(input, "input"), dim, start, end, step));
    });
}

diopiError_t diopiSliceBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, Sizes, int64_t dim,
                                int64_t start, int64_t end, int64_t step) {
    return guarded([&] {
        fill_zero(ctx, required_view(grad_input, "grad_input"));
        copy_part(ctx, slice_of(view(grad_input), dim, start, end, step), required_view(grad_output, "grad_output"));
    });
}

diopiError_t diopiSliceScatter(Context ctx, Tensor out, ConstTensor input, ConstTensor src, int64_t dim, int64_t start,
                               int64_t end, int64_t step) {
    return guarded([&] {
        copy_part(ctx, required_view(out, "out"), required_view(input, "input"));
        copy_part(ctx, slice_of(view(out), dim, start, end, step), required_view(src, "src"));
    });
}

diopiError_t diopiSelect(Context ctx, Tensor out, ConstTensor input, int64_t dim, int64_t index) {
    return guarded(
        [&] { copy_part(ctx, required_view(out, "out"), select_of(required_view(input, "input"), dim, index)); });
}

diopiError_t diopiSelectBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, Sizes, int64_t dim,
                                 int64_t index) {
    return guarded([&] {
        fill_zero(ctx, required_view(grad_input, "grad_input"));
        copy_part(ctx, select_of(view(grad_input), dim, index), required_view(grad_output, "grad_output"));
    });
}

diopiError_t diopiSelectScatter(Context ctx, Tensor out, ConstTensor input, ConstTensor src, int64_t dim,
                                int64_t index) {
    return guarded([&] {
        copy_part(ctx, required_view(out, "out"), required_view(input, "input"));
        copy_part(ctx, select_of(view(out), dim, index), required_view(src, "src"));
    });
}

}  // namespace impl::portable
