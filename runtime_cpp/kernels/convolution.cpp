// Convolutions of two and three dimensions and their gradients, in memory with the channels innermost: windows are laid
// out as rows of a matrix, the rest is matrix products. A transposed convolution is the gradient of a convolution by
// its input, and has its gradients with the roles of input and output exchanged.
#include <diopi/diopirt.h>

#include "core/column_products.h"
#include "core/copy.h"
#include "core/depthwise.h"
#include "core/matrix.h"
#include "core/runs.h"

namespace diopi::kernels {
namespace {

// The arguments of the contract; `output_padding` is null where the convolution is not transposed.
struct Geometry {
    int rank;  // of the images: planes or volumes
    diopiSize_t stride, padding, dilation;
    int64_t groups;
    const diopiSize_t* output_padding;
};

// The value for one of the last `rank` of three axes: a list has one for each, or one for all, or none.
int64_t value_at(const diopiSize_t& list, int axis, int rank, int64_t otherwise, const char* name) {
    require(list.len <= 1 || list.len == rank, "'%s' has %lld values, expected one or %d", name,
            static_cast<long long>(list.len), rank);
    if (list.len == 0 || axis < 3 - rank) return otherwise;
    return list.data[list.len == 1 ? 0 : axis - (3 - rank)];
}

// A batch of volumes: an image alone becomes a batch of one, a plane a volume of depth one.
TensorView volumes_of(const TensorView& tensor, int rank) {
    require(tensor.ndim == rank + 1 || tensor.ndim == rank + 2, "expected %d or %d dimensions, got %d", rank + 1,
            rank + 2, tensor.ndim);
    const TensorView batch = tensor.ndim == rank + 1 ? with_dim(tensor, 0, 1, 0) : tensor;
    return rank == 2 ? with_dim(batch, 2, 1, 0) : batch;
}

TensorView filters_of(const TensorView& weight, int rank) {
    // PyTorch's one convolution operator comes here with any rank; this status sends the others to the CPU.
    if (weight.ndim == 5 && rank == 2) fail(diopi5DNotSupported, "a 2-D convolution takes no 3-D input");
    require(weight.ndim == rank + 2, "the weight of this convolution has %d dimensions, expected %d", weight.ndim,
            rank + 2);
    return volumes_of(weight, rank);
}

void require_extent(int64_t extent, int64_t expected) {
    require(extent == expected, "the output of this convolution is %lld wide, expected %lld",
            static_cast<long long>(extent), static_cast<long long>(expected));
}

// Fails where the sizes do not fit. A transposed convolution gives its output for `input`, and its input for `output`.
ConvolutionShape shape_of(const TensorView& input, const TensorView& weight, const TensorView& output,
                          const Geometry& g) {
    Window axes[3];
    for (int axis = 0; axis < 3; ++axis) {
        Window& w = axes[axis];
        w = window_of(input.sizes[2 + axis], output.sizes[2 + axis], weight.sizes[2 + axis],
                      value_at(g.stride, axis, g.rank, 1, "stride"), value_at(g.padding, axis, g.rank, 0, "padding"),
                      value_at(g.dilation, axis, g.rank, 1, "dilation"));
        const int64_t reach = w.dilation * (w.kernel - 1) + 1 - 2 * w.padding;  // of a window into the input
        if (g.output_padding == nullptr) {
            require_extent(w.output, w.input < reach ? 0 : (w.input - reach) / w.stride + 1);
        } else {
            const int64_t more = value_at(*g.output_padding, axis, g.rank, 0, "output_padding");
            require(more >= 0 && (more < w.stride || more < w.dilation),
                    "an output padding of %lld is not smaller than the stride or the dilation",
                    static_cast<long long>(more));
            require_extent(w.input, (w.output - 1) * w.stride + reach + more);
        }
    }
    const ConvolutionShape shape{
        {axes[0], axes[1], axes[2]}, input.sizes[0], input.sizes[1], weight.sizes[0], g.groups};
    require(g.groups > 0 && shape.channels == weight.sizes[1] * g.groups && shape.filters % g.groups == 0 &&
                output.sizes[1] == shape.filters,
            "a weight of %lld by %lld channels in %lld groups does not fit images of %lld and %lld channels",
            static_cast<long long>(weight.sizes[0]), static_cast<long long>(weight.sizes[1]),
            static_cast<long long>(g.groups), static_cast<long long>(input.sizes[1]),
            static_cast<long long>(output.sizes[1]));
    require(output.sizes[0] == shape.batch, "a convolution of %lld images gives as many, not %lld",
            static_cast<long long>(shape.batch), static_cast<long long>(output.sizes[0]));
    return shape;
}

// NCDHW sizes seen in the order of NDHWC memory.
TensorView channels_last(const TensorView& tensor) {
    return transposed(transposed(transposed(tensor, 1, 2), 2, 3), 3, 4);
}

// A result to compute into: the tensor itself where it lies in NDHWC memory and needs no conversion.
TensorView target_for(diopiContextHandle_t ctx, const TensorView& tensor, diopiDtype_t dtype) {
    const TensorView last = channels_last(tensor);
    return last.dtype == dtype && last.contiguous() ? last : temporary_like(ctx, last, dtype);
}

struct WindowColumns {
    bool direct(const ConvolutionShape& shape) const { return shape.pointwise(); }

    // columns[(n, z, y, x), (kz, ky, kx, c)] = input[n, z * stride + kz ..., y * stride + ky ..., x * stride + kx ...,
    // first_channel + c], zero outside. One row of a window at a time: where neither its taps nor its channels are
    // spread out it is one run of the input.
    template <class T>
    void unroll(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* input,
                T* columns) const {
        const Window depth = shape.windows.depth, rows = shape.windows.rows, cols = shape.windows.columns;
        const int64_t channels = shape.channels, width = shape.group_channels(), first_channel = part.first_channel;
        const int64_t tap_step = cols.dilation * channels, tap_rows = depth.kernel * rows.kernel;
        for_runs(
            stream, part.windows * tap_rows, cols.kernel * width, DIOPI_LAMBDA(int64_t i, int64_t begin, int64_t end) {
                const int64_t window = i / tap_rows;
                const int64_t tap_row = i - window * tap_rows;
                const int64_t kz = depth.kernel == 1 ? 0 : tap_row / rows.kernel;
                const Place o = place_of(window, depth.output, rows.output, cols.output);
                const int64_t z = depth.start(o.plane) + kz * depth.dilation;
                const int64_t y = rows.start(o.row) + (tap_row - kz * rows.kernel) * rows.dilation;
                const int64_t x = cols.start(o.column);
                T* target = columns + i * cols.kernel * width;
                if (z < 0 || z >= depth.input || y < 0 || y >= rows.input) {
                    for (int64_t j = begin; j < end; ++j) target[j] = T(0);
                    return;
                }
                const int64_t plane = o.image * depth.input + z;
                const T* line = input + (plane * rows.input + y) * cols.input * channels + first_channel;
                if (tap_step == width && x >= 0 && x + cols.kernel <= cols.input) {
                    const T* source = line + x * channels;
                    for (int64_t j = begin; j < end; ++j) target[j] = source[j];
                    return;
                }
                for (int64_t j = begin; j < end;) {
                    const int64_t tap = j / width;
                    const int64_t stop = (tap + 1) * width < end ? (tap + 1) * width : end;
                    const int64_t here = x + tap * cols.dilation;
                    if (here < 0 || here >= cols.input) {
                        for (; j < stop; ++j) target[j] = T(0);
                    } else {
                        const T* source = line + here * channels - tap * width;
                        for (; j < stop; ++j) target[j] = source[j];
                    }
                }
            });
    }

    // Each input pixel sums up its places in all windows, so that no two writes meet.
    template <class T>
    void roll_up(diopiStreamHandle_t stream, const ConvolutionShape& shape, const Part& part, const T* columns,
                 T* grad_input, bool adds) const {
        const VolumeWindows windows = shape.windows;
        const int64_t channels = shape.channels, width = shape.group_channels(), first_channel = part.first_channel;
        const int64_t taps = shape.taps();
        for_runs(
            stream, part.images * shape.input_pixels(), width, DIOPI_LAMBDA(int64_t pixel, int64_t begin, int64_t end) {
                const Place p = place_of(pixel, windows.depth.input, windows.rows.input, windows.columns.input);
                T* target = grad_input + pixel * channels + first_channel;
                if (!adds) {
                    for (int64_t c = begin; c < end; ++c) target[c] = T(0);
                }
                for_covering_windows(windows, p, [&](int64_t window, int64_t tap) {
                    const T* source = columns + (window * taps + tap) * width;
                    for (int64_t c = begin; c < end; ++c) target[c] += source[c];
                });
            });
    }
};

// The three products of a convolution. Results are of any layout and float dtype; what is read is dense().
template <class T>
class Convolution {
public:
    Convolution(diopiContextHandle_t ctx, const ConvolutionShape& shape)
        : ctx_(ctx), shape_(shape), products_(ctx, shape, WindowColumns{}) {}

    // In NDHWC memory and of type T; the tensor itself where it is that already.
    TensorView dense(const TensorView& tensor) const { return contiguous_as(ctx_, channels_last(tensor), dtype_of<T>); }

    void forward(const TensorView& out, const TensorView& pixels, const TensorView& filters, const TensorView& bias) {
        compute(out, bias, shape_.row_length() == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise(ctx_, shape_, dtype_of<T>, target.data, pixels.data, filters.data, bias.defined());
            } else {
                products_.forward(target.as<T>(), pixels.as<T>(), filters.as<T>(), bias ? 1 : 0);
            }
        });
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        compute(grad_input, bias, grads.numel == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise_backward_input(ctx_, shape_, dtype_of<T>, target.data, grads.data, filters.data,
                                         bias.defined());
            } else {
                products_.backward_input(target.as<T>(), grads.as<T>(), filters.as<T>(), bias ? 1 : 0);
            }
        });
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& pixels) {
        compute(grad_weight, undefined_view(), grads.numel == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise_backward_weight(ctx_, shape_, dtype_of<T>, target.data, grads.data, pixels.data);
            } else {
                products_.backward_weight(target.as<T>(), grads.as<T>(), pixels.as<T>());
            }
        });
    }

private:
    // f(target) adds to the bias, or overwrites where there is none; an empty sum is left out.
    template <class F>
    void compute(const TensorView& result, const TensorView& bias, bool empty_sum, F&& f) {
        const TensorView target = target_for(ctx_, result, dtype_of<T>);
        if (bias) copy_elements(ctx_, target, bias);
        if (!bias && empty_sum) fill_zero(ctx_, target);
        if (result.numel > 0 && !empty_sum) f(target);
        copy_elements(ctx_, channels_last(result), target);
    }

    diopiContextHandle_t ctx_;
    ConvolutionShape shape_;
    ColumnProducts<T, WindowColumns> products_;
};

// Calls f with the convolution that computes for tensors of `dtype`.
template <class F>
void with_convolution(diopiContextHandle_t ctx, diopiDtype_t dtype, const ConvolutionShape& shape, F&& f) {
    if (!is_float_dtype(dtype)) fail_dtype(dtype);
    dispatch<Types<float, double>>(product_dtype(dtype), [&](auto type) {
        Convolution<typename decltype(type)::type> convolution(ctx, shape);
        f(convolution);
    });
}

diopiError_t convolve(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, const Geometry& geometry) {
    return guarded([&] {
        const TensorView filters = filters_of(required_view(weight, "weight"), geometry.rank);
        const TensorView result = volumes_of(required_view(out, "out"), geometry.rank);
        const TensorView images = volumes_of(required_view(input, "input"), geometry.rank);
        const bool is_transposed = geometry.output_padding != nullptr;
        const ConvolutionShape shape =
            is_transposed ? shape_of(result, filters, images, geometry) : shape_of(images, filters, result, geometry);
        with_convolution(ctx, result.dtype, shape, [&](auto& convolution) {
            if (is_transposed) {
                convolution.backward_input(result, convolution.dense(images), convolution.dense(filters), view(bias));
            } else {
                convolution.forward(result, convolution.dense(images), convolution.dense(filters), view(bias));
            }
        });
    });
}

struct Gradients {
    diopiTensorHandle_t input, weight, bias;  // null: not wanted
};

diopiError_t convolve_backward(diopiContextHandle_t ctx, const Gradients& wanted, diopiConstTensorHandle_t grad_output,
                               diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
                               const Geometry& geometry) {
    return guarded([&] {
        const TensorView filters = filters_of(required_view(weight, "weight"), geometry.rank);
        const TensorView incoming = volumes_of(required_view(grad_output, "grad_output"), geometry.rank);
        const TensorView images = volumes_of(required_view(input, "input"), geometry.rank);
        const bool is_transposed = geometry.output_padding != nullptr;
        const ConvolutionShape shape = is_transposed ? shape_of(incoming, filters, images, geometry)
                                                     : shape_of(images, filters, incoming, geometry);
        const TensorView none = undefined_view();
        with_convolution(ctx, incoming.dtype, shape, [&](auto& convolution) {
            const TensorView grads = convolution.dense(incoming);
            if (wanted.input != nullptr) {
                const TensorView grad_input = volumes_of(view(wanted.input), geometry.rank);
                require_same_sizes(grad_input, images, "grad_input", "input");
                if (is_transposed) {
                    convolution.forward(grad_input, grads, convolution.dense(filters), none);
                } else {
                    convolution.backward_input(grad_input, grads, convolution.dense(filters), none);
                }
            }
            if (wanted.weight != nullptr) {
                const TensorView grad_weight = volumes_of(view(wanted.weight), geometry.rank);
                const TensorView pixels = convolution.dense(images);
                require_same_sizes(grad_weight, filters, "grad_weight", "weight");
                convolution.backward_weight(grad_weight, is_transposed ? pixels : grads,
                                            is_transposed ? grads : pixels);
            }
            if (wanted.bias != nullptr) sum_columns(ctx, view(wanted.bias), joined(grads, 0, 3));
        });
    });
}

}  // namespace
}  // namespace diopi::kernels

namespace impl {
namespace portable {

using namespace diopi::kernels;

diopiError_t diopiConvolution2d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return convolve(ctx, out, input, weight, bias, {2, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                        diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t weight, diopiSize_t*, diopiSize_t stride,
                                        diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {2, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution3d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return convolve(ctx, out, input, weight, bias, {3, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution3dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                        diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t weight, diopiSize_t*, diopiSize_t stride,
                                        diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {3, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvTranspose2d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                  diopiSize_t padding, diopiSize_t output_padding, int64_t groups,
                                  diopiSize_t dilation) {
    return convolve(ctx, out, input, weight, bias, {2, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                          diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                          diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                          diopiConstTensorHandle_t weight, diopiSize_t*, diopiSize_t stride,
                                          diopiSize_t padding, diopiSize_t dilation, diopiSize_t output_padding,
                                          int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {2, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose3d(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t stride,
                                  diopiSize_t padding, diopiSize_t output_padding, int64_t groups,
                                  diopiSize_t dilation) {
    return convolve(ctx, out, input, weight, bias, {3, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose3dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                          diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                          diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                          diopiConstTensorHandle_t weight, diopiSize_t*, diopiSize_t stride,
                                          diopiSize_t padding, diopiSize_t dilation, diopiSize_t output_padding,
                                          int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {3, stride, padding, dilation, groups, &output_padding});
}

}  // namespace portable
}  // namespace impl
