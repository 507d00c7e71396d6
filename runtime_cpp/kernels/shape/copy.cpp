// Copies, fills and the operators that only move elements: expand, permute, transpose, contiguous.
#include "copy/copy.h"

#include <diopi/diopirt.h>

#include "core/scalar.h"
#include "core/view.h"
#include "space/index.h"

namespace impl::portable {

using namespace diopi::kernels;

diopiError_t diopiCopyInp(Context ctx, ConstTensor src, Tensor dest) {
    return guarded([&] {
        if (src == dest) return;
        copy_elements(ctx, required_view(dest, "dest"), required_view(src, "src"));
    });
}

diopiError_t diopiCastDtype(Context ctx, Tensor out, ConstTensor input) {
    return guarded([&] { copy_elements(ctx, required_view(out, "out"), required_view(input, "input")); });
}

namespace {

// The strides of a new tensor, `order` naming its dimensions from the slowest to the fastest.
void dense_strides(const TensorView& like, const int* order, int64_t* strides) {
    int64_t next = 1;
    for (int k = like.ndim - 1; k >= 0; --k) {
        strides[order[k]] = next;
        next *= like.sizes[order[k]] > 1 ? like.sizes[order[k]] : 1;
    }
}

// Channels last puts dimension 1 behind the spatial ones.
void memory_order(const TensorView& like, diopiMemoryFormat_t format, int* order) {
    const int expected = format == ChannelsLast     ? 4
                         : format == ChannelsLast3d ? 5
                         : format == ChannelsLast1d ? 3
                                                    : like.ndim;
    require(like.ndim == expected, "this memory format needs %d dimensions, the tensor has %d", expected, like.ndim);
    const bool channels_last = format == ChannelsLast || format == ChannelsLast3d || format == ChannelsLast1d;
    for (int k = 0; k < like.ndim; ++k) order[k] = !channels_last || k == 0 ? k : k + 1 == like.ndim ? 1 : k + 1;
}

}  // namespace

diopiError_t diopiContiguous(Context ctx, Tensor* out, ConstTensor input, diopiMemoryFormat_t memoryFormat) {
    return guarded([&] {
        require(out != nullptr, "the place for the result is null");
        const TensorView source = required_view(input, "input");
        int64_t strides[kMaxDims];
        if (memoryFormat == Preserve) {
            for (int d = 0; d < source.ndim; ++d) strides[d] = source.strides[d];
        } else {
            int order[kMaxDims];
            memory_order(source, memoryFormat, order);
            dense_strides(source, order, strides);
        }
        const Sizes shape{source.sizes, source.ndim};
        const Sizes layout{strides, source.ndim};
        check(diopiRequireTensor(ctx, out, &shape, &layout, source.dtype, diopi_device),
              "the runtime gave no tensor: device memory is full");
        copy_elements(ctx, view(*out), source);
    });
}

diopiError_t diopiFill(Context ctx, Tensor input, const diopiScalar_t* value) {
    return guarded([&] {
        require(value != nullptr, "the scalar 'value' is null");
        fill_elements(ctx, required_view(input, "input"), *value);
    });
}

diopiError_t diopiZeroInp(Context ctx, Tensor self) {
    return guarded([&] { fill_elements(ctx, required_view(self, "self"), integer_scalar(0)); });
}

diopiError_t diopiZeros(Context ctx, Tensor out, Sizes) {
    return guarded([&] { fill_elements(ctx, required_view(out, "out"), integer_scalar(0)); });
}

diopiError_t diopiOnes(Context ctx, Tensor out, Sizes) {
    return guarded([&] { fill_elements(ctx, required_view(out, "out"), integer_scalar(1)); });
}

diopiError_t diopiExpand(Context ctx, Tensor out, ConstTensor input) {
    return guarded([&] { copy_elements(ctx, required_view(out, "out"), required_view(input, "input")); });
}

diopiError_t diopiPermute(Context ctx, Tensor out, ConstTensor input, Sizes dims) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        require(dims.len == source.ndim, "permute takes one position per dimension: %d, not %d", source.ndim,
                static_cast<int>(dims.len));
        TensorView permuted = source;
        unsigned seen = 0;
        for (int d = 0; d < source.ndim; ++d) {
            const int from = normalized_dim(dims.data[d], source.ndim);
            require((seen >> from & 1u) == 0, "permute names dimension %d twice", from);
            seen |= 1u << from;
            permuted.sizes[d] = source.sizes[from];
            permuted.strides[d] = source.strides[from];
        }
        copy_elements(ctx, required_view(out, "out"), permuted);
    });
}

diopiError_t diopiTranspose(Context ctx, Tensor out, ConstTensor input, int64_t dim0, int64_t dim1) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        const int a = normalized_dim(dim0, source.ndim), b = normalized_dim(dim1, source.ndim);
        copy_elements(ctx, required_view(out, "out"), transposed(source, a, b));
    });
}

}  // namespace impl::portable
