// The vendor's own memory formats where it has none: the contract's orders of dimensions, by their numbers.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"
#include "core/workspace.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

bool has_channels(const TensorView& tensor) { return tensor.ndim >= 3 && tensor.ndim <= 5; }

// Sizes seen in the order of memory that has channels innermost; images have three to five dimensions.
TensorView channels_last(TensorView tensor) {
    for (int d = 1; d + 1 < tensor.ndim; ++d) tensor = transposed(tensor, d, d + 1);
    return tensor;
}

diopiMemoryFormat_t channels_last_format(int ndim) {
    return ndim == 3 ? ChannelsLast1d : ndim == 4 ? ChannelsLast : ChannelsLast3d;
}

// What is dense in both orders counts as contiguous.
diopiMemoryFormat_t format_of(const TensorView& tensor) {
    const bool innermost = has_channels(tensor) && !tensor.contiguous() && channels_last(tensor).contiguous();
    return innermost ? channels_last_format(tensor.ndim) : Contiguous;
}

// A new tensor of the shape and dtype of `like`, laid out in `format`.
TensorView laid_out(Context ctx, Tensor* out, const TensorView& like, diopiMemoryFormat_t format) {
    if (format == Contiguous) return allocated(ctx, out, like.sizes, like.ndim, like.dtype);
    require(has_channels(like) && format == channels_last_format(like.ndim),
            "a tensor of %d dimensions has no memory format %d", like.ndim, static_cast<int>(format));
    TensorView dense = channels_last(like);
    dense = dense_view(nullptr, dense.dtype, dense.sizes, dense.ndim);
    for (int d = dense.ndim - 1; d > 1; --d) dense = transposed(dense, d - 1, d);
    const Sizes sizes{dense.sizes, dense.ndim};
    const Sizes strides{dense.strides, dense.ndim};
    check(diopiRequireTensor(ctx, out, &sizes, &strides, dense.dtype, diopi_device),
          "the runtime gave no tensor: device memory is full");
    return view(*out);
}

}  // namespace

diopiError_t diopiGetNativeMemoryFormat(Context, ConstTensor input, int64_t* format) {
    return guarded([&] {
        require(format != nullptr, "the result 'format' is null");
        *format = format_of(required_view(input, "input"));
    });
}

diopiError_t diopiNativeMemoryFormatCast(Context ctx, Tensor* out, Tensor in, int64_t format) {
    return guarded([&] {
        const TensorView source = required_view(in, "in");
        require(format >= Contiguous && format <= ChannelsLast1d, "there is no memory format %lld", format);
        const auto wanted = static_cast<diopiMemoryFormat_t>(format);
        copy_elements(ctx, laid_out(ctx, out, source, wanted == Preserve ? format_of(source) : wanted), source);
    });
}

// Nothing is kept beside a tensor that would have to be freed.
diopiError_t diopiTensorDestructionHook(Context, void*) { return diopiSuccess; }

}  // namespace impl::portable
