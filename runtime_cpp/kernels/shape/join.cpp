// Tensors put together and taken apart: cat, stack, split, repeat, flip and roll are copies between views.
#include <diopi/diopirt.h>

#include <vector>

#include "copy/copy.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// torch accepts an empty one-dimensional tensor in a list of any shapes.
bool is_placeholder(const TensorView& tensor) { return tensor.ndim == 1 && tensor.sizes[0] == 0; }

void concatenate(Context ctx, const TensorView& out, ConstTensor* tensors, int64_t count, int64_t dim) {
    if (is_placeholder(out)) return;
    const int at = normalized_dim(dim, out.ndim);
    int64_t start = 0;
    std::vector<Copy> copies;
    for (int64_t i = 0; i < count; ++i) {
        const TensorView part = required_view(tensors[i], "tensors");
        if (is_placeholder(part)) continue;
        require(part.ndim == out.ndim, "tensor %lld of the list has %d dimensions, expected %d", i, part.ndim,
                out.ndim);
        require(start + part.sizes[at] <= out.sizes[at], "the tensors of the list are longer than the result");
        const TensorView place = narrowed(out, at, start, part.sizes[at]);
        require_same_sizes(place, part, "out", "tensors");
        copies.push_back({place, part});
        start += part.sizes[at];
    }
    require(start == out.sizes[at], "the tensors of the list are shorter than the result");
    copy_all(ctx, copies);
}

void stack(Context ctx, const TensorView& out, ConstTensor* tensors, int64_t count) {
    require(count == out.sizes[0], "%lld tensors do not fill %lld places", count, out.sizes[0]);
    std::vector<Copy> copies;
    for (int64_t i = 0; i < count; ++i) {
        const TensorView part = required_view(tensors[i], "tensors"), place = selected(out, 0, i);
        require_same_sizes(place, part, "out", "tensors");
        copies.push_back({place, part});
    }
    copy_all(ctx, copies);
}

void split(Context ctx, Tensor* outs, int64_t count, const TensorView& input, const Sizes& sizes, int64_t dim) {
    const int at = normalized_dim(dim, input.ndim);
    require(sizes.len == count, "%lld sizes do not describe %lld results", sizes.len, count);
    int64_t start = 0;
    std::vector<Copy> copies;
    for (int64_t i = 0; i < count; ++i) {
        require(start + sizes.data[i] <= input.sizes[at], "the sizes of a split add up to more than %lld",
                input.sizes[at]);
        const TensorView part = narrowed(input, at, start, sizes.data[i]), result = required_view(outs[i], "outs");
        require_same_sizes(result, part, "outs", "input");
        copies.push_back({result, part});
        start += sizes.data[i];
    }
    copy_all(ctx, copies);
}

// Each repeated dimension as two: how often, and what.
void repeat(Context ctx, const TensorView& out, const TensorView& input, const Sizes& repeats) {
    require(repeats.len == out.ndim && input.ndim <= out.ndim,
            "repeat needs one count for each of at least %d dimensions", input.ndim);
    const int lead = out.ndim - input.ndim;
    TensorView to = out;
    TensorView from = input;
    for (int d = 0; d < lead; ++d) from = with_dim(from, 0, 1, 0);
    int axis = 0;
    for (int d = 0; d < out.ndim; ++d, ++axis) {
        const int64_t count = repeats.data[d], size = from.sizes[axis];
        require(count >= 0 && to.sizes[axis] == count * size,
                "dimension %d of the result is not %lld times as long as the input's", d, count);
        if (count == 1 || size == 1) continue;  // the copy broadcasts a size of one
        const int64_t stride = to.strides[axis];
        to.sizes[axis] = size;
        to = with_dim(to, axis, count, stride * size);
        from = with_dim(from, axis, 1, 0);
        ++axis;
    }
    copy_elements(ctx, to, from);
}

// A view that walks a dimension backwards.
void flip(Context ctx, const TensorView& out, const TensorView& input, const Sizes& dims) {
    TensorView reversed = input;
    bool seen[kMaxDims] = {};
    for (int64_t i = 0; i < dims.len; ++i) {
        const int at = normalized_dim(dims.data[i], input.ndim);
        require(!seen[at], "dimension %d appears more than once in the list of dims", at);
        seen[at] = true;
        if (input.ndim > 0 && input.numel > 0)
            reversed = narrowed(reversed, at, reversed.sizes[at] - 1, reversed.sizes[at], -1);
    }
    require_same_sizes(out, input, "out", "input");
    copy_elements(ctx, out, reversed);
}

// How far each dimension is rolled, from zero to its size; a dimension may be listed more than once.
struct Shifts {
    int64_t by[kMaxDims];
};

Shifts shifts_of(const TensorView& tensor, const Sizes& shifts, const Sizes& dims) {
    require(shifts.len == dims.len, "roll needs one shift for each dimension");
    Shifts total{};
    for (int64_t i = 0; i < dims.len; ++i) {
        const int at = normalized_dim(dims.data[i], tensor.ndim);
        const int64_t size = tensor.sizes[at];
        total.by[at] = ((total.by[at] + shifts.data[i]) % size + size) % size;
    }
    return total;
}

// The two parts of each dimension change places, from dimension `dim` on.
void roll(Context ctx, const TensorView& out, const TensorView& input, const Shifts& shifts, int dim) {
    if (out.numel == 0) return;
    while (dim < input.ndim && shifts.by[dim] == 0) ++dim;
    if (dim == input.ndim) return copy_elements(ctx, out, input);
    const int64_t shift = shifts.by[dim], rest = input.sizes[dim] - shift;
    roll(ctx, narrowed(out, dim, shift, rest), narrowed(input, dim, 0, rest), shifts, dim + 1);
    roll(ctx, narrowed(out, dim, 0, shift), narrowed(input, dim, rest, shift), shifts, dim + 1);
}

}  // namespace

diopiError_t diopiCat(Context ctx, Tensor out, ConstTensor* tensors, int64_t num_inputs, int64_t dim) {
    return guarded([&] { concatenate(ctx, required_view(out, "out"), tensors, num_inputs, dim); });
}

diopiError_t diopiStack(Context ctx, Tensor out, ConstTensor* tensors, int64_t numTensors, int64_t dim) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        const int at = normalized_dim(dim, result.ndim);
        stack(ctx, with_dim(without_dim(result, at), 0, result.sizes[at], result.strides[at]), tensors, numTensors);
    });
}

diopiError_t diopiSplitWithSizes(Context ctx, Tensor* outs, int64_t num_outs, ConstTensor input, const Sizes splitSizes,
                                 int64_t dim) {
    return guarded([&] { split(ctx, outs, num_outs, required_view(input, "input"), splitSizes, dim); });
}

diopiError_t diopiRepeat(Context ctx, Tensor out, ConstTensor input, Sizes repeats_size) {
    return guarded([&] { repeat(ctx, required_view(out, "out"), required_view(input, "input"), repeats_size); });
}

diopiError_t diopiFlip(Context ctx, Tensor out, ConstTensor input, Sizes dims) {
    return guarded([&] { flip(ctx, required_view(out, "out"), required_view(input, "input"), dims); });
}

diopiError_t diopiRoll(Context ctx, Tensor out, ConstTensor input, Sizes shifts, Sizes dims) {
    return guarded([&] {
        TensorView to = required_view(out, "out");
        TensorView from = required_view(input, "input");
        require_same_sizes(to, from, "out", "input");
        if (to.numel == 0) return;
        if (dims.len > 0)
            return roll(ctx, at_least_1d(to), at_least_1d(from), shifts_of(at_least_1d(from), shifts, dims), 0);
        // Without dims the elements are rolled in row-major order.
        const int64_t first = 0;
        const TensorView source = contiguous_as(ctx, from, from.dtype);
        const TensorView target = to.contiguous() ? to : contiguous_as(ctx, to, to.dtype);
        const TensorView flat = dense_view(source.data, source.dtype, &source.numel, 1);
        roll(ctx, dense_view(target.data, target.dtype, &target.numel, 1), flat,
             shifts_of(flat, shifts, Sizes{&first, 1}), 0);
        copy_elements(ctx, to, target);
    });
}

}  // namespace impl::portable
