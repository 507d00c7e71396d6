// Indexing by a list of tensors, as in input[i, :, j]: integer tensors broadcast against each other, masks stand for
// their positions.
#include <diopi/diopirt.h>

#include <vector>

#include "copy/copy.h"
#include "copy/slices.h"
#include "core/view.h"
#include "core/workspace.h"
#include "positions.h"
#include "space/bounds.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

bool is_mask(const TensorView& index) { return index.dtype == diopi_dtype_bool || index.dtype == diopi_dtype_uint8; }

// One list entry per dimension, undefined where the dimension is taken whole; each mask is replaced by a tensor per
// dimension of its own.
std::vector<TensorView> index_per_dim(Context ctx, const TensorView& input, ConstTensor* indices, int64_t count) {
    std::vector<TensorView> result;
    for (int64_t i = 0; i < count; ++i) {
        const TensorView index = view(indices[i]);
        if (!index || !is_mask(index)) {
            if (index) require_index_dtype(index);
            result.push_back(index);
            continue;
        }
        const int first = static_cast<int>(result.size());
        require(first + index.ndim <= input.ndim, "too many indices for a tensor of %d dimensions", input.ndim);
        for (int d = 0; d < index.ndim; ++d) {
            require(index.sizes[d] == input.sizes[first + d],
                    "the shape of the mask at dimension %d does not match the shape of the indexed tensor", first + d);
        }
        Tensor handle = nullptr;
        const TensorView positions = coordinates(ctx, &handle, nonzero_positions(ctx, index), index);
        for (int d = 0; d < index.ndim; ++d) result.push_back(selected(positions, 1, d));
    }
    require(static_cast<int>(result.size()) <= input.ndim, "too many indices for a tensor of %d dimensions",
            input.ndim);
    result.resize(static_cast<size_t>(input.ndim), undefined_view());
    return result;
}

// What an index list selects: the result's shape, in which the dimensions [dim, dim + index_dims) count the slices.
struct Selection {
    Slices slices;
    TensorView shape;
    int dim;
    int index_dims;
};

Selection select(Context ctx, const TensorView& input, ConstTensor* indices, int64_t count) {
    const std::vector<TensorView> per_dim = index_per_dim(ctx, input, indices, count);
    TensorView places = dense_view(nullptr, diopi_dtype_int64, nullptr, 0);
    int first = -1, last = -1, used = 0;
    for (int d = 0; d < input.ndim; ++d) {
        const TensorView& index = per_dim[static_cast<size_t>(d)];
        if (!index) continue;
        places = common_shape(places, index);
        for (int n = 0; n < index.ndim; ++n)
            require(index.sizes[n] == 1 || index.sizes[n] == places.sizes[places.ndim - index.ndim + n],
                    "the index tensors cannot be broadcast against each other");
        first = first < 0 ? d : first;
        last = d;
        ++used;
    }
    require(used > 0, "an index list needs at least one tensor");
    Selection result{};
    // The new dimensions stand where the indexed ones were, or in front when those are not neighbours.
    result.dim = last - first + 1 == used ? first : 0;
    result.index_dims = places.ndim;
    auto* offsets = workspace_of<int64_t>(ctx, places.numel);
    result.slices = {input, offsets, places.numel};
    bool is_first = true;
    for (int d = input.ndim - 1; d >= 0; --d) {
        const TensorView& index = per_dim[static_cast<size_t>(d)];
        if (!index) continue;
        if (places.numel > 0) {
            require_known_in_bounds(ctx, index, input.sizes[d], d, Negative::from_the_end);
            add_offsets(stream_of(ctx), offsets, expanded_to(index, places), input.sizes[d], input.strides[d],
                        -input.sizes[d], is_first);
        }
        is_first = false;
        result.slices.first = without_dim(result.slices.first, d);
    }
    result.shape = result.slices.first;
    for (int d = 0; d < places.ndim; ++d) result.shape = with_dim(result.shape, result.dim + d, places.sizes[d], 0);
    return result;
}

// A tensor of the selection's shape with its index dimensions as one; copied when their strides are uneven.
TensorView as_list(Context ctx, const TensorView& tensor, const Selection& selection) {
    if (selection.index_dims == 0) return with_dim(tensor, selection.dim, 1, 0);
    return joined_evenly(ctx, tensor, selection.dim, selection.dim + selection.index_dims - 1);
}

void write(Context ctx, const TensorView& target, const TensorView& values, ConstTensor* indices, int64_t count,
           bool adds) {
    const diopiDtype_t dtype = adds ? sum_dtype(target.dtype) : target.dtype;
    const TensorView sums = converted(ctx, target, dtype);
    const Selection selection = select(ctx, sums, indices, count);
    const TensorView list = as_list(ctx, expanded_to(converted(ctx, values, dtype), selection.shape), selection);
    if (adds) {
        accumulate(ctx, selection.slices, list, selection.dim);
    } else {
        put(stream_of(ctx), selection.slices, list, selection.dim);
    }
    copy_elements(ctx, target, sums);
}

}  // namespace

diopiError_t diopiIndex(Context ctx, Tensor* out, ConstTensor input, ConstTensor* indices, int64_t nums) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        const Selection selection = select(ctx, source, indices, nums);
        const TensorView result = allocated(ctx, out, selection.shape.sizes, selection.shape.ndim, source.dtype);
        if (result.numel > 0) take(stream_of(ctx), as_list(ctx, result, selection), selection.dim, selection.slices);
    });
}

diopiError_t diopiIndexBackward(Context ctx, Tensor grad_input, Tensor zeros_like_input, ConstTensor* indices,
                                int64_t nums, ConstTensor grad_output) {
    return guarded([&] {
        const TensorView target = required_view(grad_input, "grad_input");
        if (zeros_like_input != nullptr && zeros_like_input != grad_input)
            copy_elements(ctx, target, view(zeros_like_input));
        write(ctx, target, required_view(grad_output, "grad_output"), indices, nums, true);
    });
}

diopiError_t diopiIndexPut(Context ctx, Tensor out, ConstTensor input, ConstTensor values, ConstTensor* indices,
                           int64_t indices_counts, bool accumulate) {
    return guarded([&] {
        copy_elements(ctx, required_view(out, "out"), required_view(input, "input"));
        write(ctx, view(out), required_view(values, "values"), indices, indices_counts, accumulate);
    });
}

diopiError_t diopiIndexPutInp(Context ctx, Tensor input, ConstTensor values, ConstTensor* indices,
                              int64_t indices_counts, bool accumulate) {
    return guarded([&] {
        write(ctx, required_view(input, "input"), required_view(values, "values"), indices, indices_counts, accumulate);
    });
}

}  // namespace impl::portable
