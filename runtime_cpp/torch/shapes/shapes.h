// The shape rules of the schemas (`out: Tensor<T> like conv_output(...)`), as functions of sizes and numbers.
//
// Only outputs of operators without a meta function in torch need them at run time. A rule takes the sizes of a tensor
// in its place; a list with a single number stands for as many as there are dimensions.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/DimVector.h>
#include <c10/util/OptionalArrayRef.h>

#include <optional>
#include <string_view>

#include "export.h"

namespace dipu::shape {

using Sizes = at::IntArrayRef;
using Shape = at::DimVector;

// One dimension or several; none, or an empty list, means all of them.
class Dims {
public:
    Dims(std::nullopt_t) {}
    Dims(int64_t dim) : dims_{dim} {}
    Dims(const std::optional<int64_t>& dim) : dims_(dim.has_value() ? 1 : 0, dim.value_or(0)) {}
    Dims(Sizes dims) : dims_(dims.begin(), dims.end()) {}
    Dims(const at::OptionalIntArrayRef& dims) : Dims(dims.value_or(Sizes())) {}

    Sizes values() const { return dims_; }

private:
    Shape dims_;
};

// A 0-d tensor.
inline Shape scalar() { return {}; }

// PyTorch's broadcasting. Throws c10::Error when the sizes do not agree.
DIPU_API Shape broadcast(Sizes first, Sizes second);
inline Shape broadcast(Sizes first, Sizes second, Sizes third) { return broadcast(broadcast(first, second), third); }

// `input` without the dimensions `dim`, or with length 1 in their place.
DIPU_API Shape reduced(Sizes input, const Dims& dim, bool keepdim = false);

// `input` with other sizes in its last dimensions.
DIPU_API Shape resized(Sizes input, Sizes last);
inline Shape resized(Sizes input, int64_t last) { return resized(input, Sizes(last)); }

// A loss: like `input` without a reduction, else 0-d. Reduction 0 is none.
DIPU_API Shape loss(Sizes input, int64_t reduction);

// Statistics of a layer norm: the outer dimensions of `input`, then a 1 for each of `normalized`.
DIPU_API Shape statistics(Sizes input, Sizes normalized);

// The same for the dimensions from `axis` on.
inline Shape statistics_from(Sizes input, int64_t axis) {
    const auto rank = static_cast<int64_t>(input.size());
    return statistics(input, input.slice(static_cast<std::size_t>(c10::maybe_wrap_dim(axis, rank))));
}

// Statistics of a batch norm: one for each channel, which is dimension 1.
DIPU_API Shape channels(Sizes input);

// [N, C_out, spatial...]; floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1
DIPU_API Shape conv_output(Sizes input, Sizes weight, Sizes stride, Sizes padding, Sizes dilation);

// Windows over the last dimensions; an empty stride is the kernel's size. The last window must start inside `input` or
// its left padding when `ceil_mode` rounds up, as PyTorch's pooling has it.
DIPU_API Shape pool_output(Sizes input, Sizes kernel, Sizes stride, Sizes padding, Sizes dilation, bool ceil_mode);

// A pooling that fits its windows to the output size `size` when `adaptive`, and slides them otherwise: those of a maximum
// with a dilation, which an average does not have.
inline Shape pooled(Sizes input, std::string_view mode, Sizes kernel, Sizes stride, Sizes padding, Sizes dilation,
                    bool ceil_mode, bool adaptive, Sizes size) {
    return adaptive ? resized(input, size)
                    : pool_output(input, kernel, stride, padding, mode == "max" ? dilation : Sizes(1), ceil_mode);
}

// What a convolution of such a stride would shrink to `input`; implemented in window_shapes.cpp, as the next three.
// `weight` is [C_in, C_out / groups, spatial...].
DIPU_API Shape conv_transpose_output(Sizes input, Sizes weight, Sizes stride, Sizes padding, Sizes output_padding,
                                     int64_t groups, Sizes dilation);

// [N, C prod(kernel), windows] of [N, C, H, W], and back to planes of the sizes `size`; N may be missing.
DIPU_API Shape columns(Sizes input, Sizes kernel, Sizes dilation, Sizes padding, Sizes stride);
DIPU_API Shape from_columns(Sizes input, Sizes size, Sizes kernel);

// [N, C, positions...] for `grid`, which is [N, positions..., coordinates].
DIPU_API Shape sampled(Sizes input, Sizes grid);

// [..., n, k] x [..., k, m], with vectors as torch.matmul takes them.
DIPU_API Shape matmul(Sizes first, Sizes second);

// [..., in] by a weight [out, in]
DIPU_API Shape linear(Sizes input, Sizes weight);

DIPU_API Shape embedding(Sizes weight, Sizes indices);
DIPU_API Shape embedding_grad(Sizes grad, int64_t num_weights);
DIPU_API Shape index_select(Sizes input, int64_t dim, Sizes index);
DIPU_API Shape repeated(Sizes input, Sizes repeats);
DIPU_API Shape stack(const at::ITensorListRef& tensors, int64_t dim);
DIPU_API Shape cat(const at::ITensorListRef& tensors, int64_t dim);

// [ceil((end - start) / step)]; without fractions when all three are integers.
DIPU_API Shape arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step);
inline Shape linspace(int64_t steps) { return {steps}; }

// Lengths one by one, and what they are computed from: `shape(size(input, 0), 2 * channels)`.
template <class... Lengths>
Shape shape(Lengths... lengths) {
    return {static_cast<int64_t>(lengths)...};
}
inline int64_t size(Sizes input, int64_t dim) {
    return input[static_cast<std::size_t>(dim < 0 ? dim + static_cast<int64_t>(input.size()) : dim)];
}
inline int64_t numel(Sizes input) {
    int64_t product = 1;
    for (const int64_t length : input) product *= length;
    return product;
}

// The given sizes.
inline Shape sized(Sizes sizes) { return Shape(sizes.begin(), sizes.end()); }

// What views and rearrangements of one tensor give; implemented in view_shapes.cpp.
DIPU_API Shape select(Sizes input, int64_t dim);
DIPU_API Shape slice(Sizes input, int64_t dim, int64_t start, int64_t end, int64_t step);
DIPU_API Shape with_size(Sizes input, int64_t dim, int64_t size);
DIPU_API Shape permuted(Sizes input, Sizes dims);
DIPU_API Shape transposed(Sizes input, int64_t dim0, int64_t dim1);
// `pad` has two numbers for each padded dimension, the last dimension first.
DIPU_API Shape padded(Sizes input, Sizes pad);
DIPU_API Shape unfolded(Sizes input, int64_t dim, int64_t size, int64_t step);
DIPU_API Shape one_hot(Sizes input, int64_t num_classes);
// Pieces of the lengths `sizes` along `dim`: the shape of the first; the others differ in that dimension.
DIPU_API Shape split(Sizes input, Sizes sizes, int64_t dim);

// Where each element of `input`, or each slice along `dim`, is found in a list without repeats.
DIPU_API Shape inverse(Sizes input, const std::optional<int64_t>& dim);
// One dimension for each tensor of a list of sequences.
DIPU_API Shape meshgrid(const at::ITensorListRef& sequences);
// The factors of a QR decomposition, of which `mode` "r" leaves the first empty.
DIPU_API Shape qr_q(Sizes input, std::string_view mode);
DIPU_API Shape qr_r(Sizes input, std::string_view mode);

// What detection gives: one number for each pair of boxes, in a row or in a table, or for each row of both if `aligned`;
// windows of images by single numbers; the features of boxes, brought to one size; images enlarged.
inline Shape overlaps(Sizes first, Sizes second, bool aligned) {
    return aligned ? Shape{size(first, 0)} : Shape{size(first, 0), size(second, 0)};
}
inline Shape flat_overlaps(Sizes first, Sizes second, bool aligned) {
    return {aligned ? size(first, 0) : size(first, 0) * size(second, 0)};
}
inline Shape conv2d_output(Sizes input, Sizes weight, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                           int64_t dilation_h, int64_t dilation_w) {
    return conv_output(input, weight, {stride_h, stride_w}, {pad_h, pad_w}, {dilation_h, dilation_w});
}
inline Shape roi_pooled(Sizes input, Sizes rois, int64_t height, int64_t width) {
    return {size(rois, 0), size(input, 1), height, width};
}
inline Shape upsampled(Sizes input, int64_t factor) {
    return {size(input, 0), size(input, 1), size(input, 2) * factor, size(input, 3) * factor};
}

}  // namespace dipu::shape
