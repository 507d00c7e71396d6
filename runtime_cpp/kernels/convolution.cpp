// 2-D convolution and its gradients, in NHWC memory: windows are laid out as rows of a matrix, the rest is matrix
// products.
#include <diopi/diopirt.h>

#include <algorithm>

#include "core/convolution_shape.h"
#include "core/copy.h"
#include "core/depthwise.h"
#include "core/matrix.h"
#include "core/runs.h"
#include "core/workspace.h"

namespace diopi::kernels {
namespace {

ConvolutionShape shape_of(const TensorView& input, const TensorView& weight, const TensorView& output,
                          const diopiSize_t& stride, const diopiSize_t& padding, const diopiSize_t& dilation,
                          int64_t groups) {
    // PyTorch's one convolution operator comes here with any rank; this status sends the others to the CPU.
    if (weight.ndim == 5) fail(diopi5DNotSupported, "a 2-D convolution takes no 3-D input");
    require(weight.ndim == 4, "the weight of a 2-D convolution has four dimensions, got %d", weight.ndim);
    Window axes[2];
    for (int axis = 0; axis < 2; ++axis) {
        axes[axis] = window_of(input.sizes[2 + axis], output.sizes[2 + axis], weight.sizes[2 + axis],
                               pair_at(stride, axis, 1, "stride"), pair_at(padding, axis, 0, "padding"),
                               pair_at(dilation, axis, 1, "dilation"));
        const Window& w = axes[axis];
        const int64_t expected = (w.input + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1;
        require(w.output == expected, "the output of this convolution is %lld wide, expected %lld",
                static_cast<long long>(w.output), static_cast<long long>(expected));
    }
    const ConvolutionShape shape{{axes[0], axes[1]}, input.sizes[0], input.sizes[1], weight.sizes[0], groups};
    require(groups > 0 && shape.channels == weight.sizes[1] * groups && shape.filters % groups == 0,
            "a weight of %lld channels in %lld groups does not fit an input of %lld channels",
            static_cast<long long>(weight.sizes[1]), static_cast<long long>(groups),
            static_cast<long long>(shape.channels));
    require(output.sizes[0] == shape.batch && output.sizes[1] == shape.filters,
            "the output of this convolution has %lld channels, expected %lld", static_cast<long long>(output.sizes[1]),
            static_cast<long long>(shape.filters));
    return shape;
}

// NCHW sizes seen in the order of NHWC memory.
TensorView channels_last(const TensorView& tensor) { return transposed(transposed(tensor, 1, 3), 1, 2); }

// Row-major in the order N, H, W, C and of `dtype`; the tensor itself where it is that already.
TensorView pixels_of(diopiContextHandle_t ctx, const TensorView& tensor, diopiDtype_t dtype) {
    return contiguous_as(ctx, channels_last(tensor), dtype);
}

// A result to compute into: the tensor itself where it lies in NHWC memory and needs no conversion.
TensorView target_for(diopiContextHandle_t ctx, const TensorView& tensor, diopiDtype_t dtype) {
    const TensorView last = channels_last(tensor);
    return last.dtype == dtype && last.contiguous() ? last : temporary_like(ctx, last, dtype);
}

// columns[(n, y, x), (ky, kx, c)] = input[n, y * stride + ky ..., x * stride + kx ..., first_channel + c], zero
// outside. One row of a window at a time: where neither its taps nor its channels are spread out it is one run of the
// input.
template <class T>
void unroll(diopiStreamHandle_t stream, const ConvolutionShape& shape, int64_t images, const T* input,
            int64_t first_channel, T* columns) {
    const Window rows = shape.windows.rows;
    const Window cols = shape.windows.columns;
    const int64_t channels = shape.channels;
    const int64_t width = shape.group_channels();
    const int64_t tap_step = cols.dilation * channels;
    for_runs(stream, images * shape.output_pixels() * rows.kernel, cols.kernel * width,
             DIOPI_LAMBDA(int64_t i, int64_t begin, int64_t end) {
                 const int64_t window = i / rows.kernel;
                 const int64_t pixel_row = window / cols.output;
                 const int64_t image = pixel_row / rows.output;
                 const int64_t y =
                     rows.start(pixel_row - image * rows.output) + (i - window * rows.kernel) * rows.dilation;
                 const int64_t x = cols.start(window - pixel_row * cols.output);
                 T* target = columns + i * cols.kernel * width;
                 if (y < 0 || y >= rows.input) {
                     for (int64_t j = begin; j < end; ++j) target[j] = T(0);
                     return;
                 }
                 const T* line = input + (image * rows.input + y) * cols.input * channels + first_channel;
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

// The transpose of unroll(): each input pixel sums up its places in all windows, so that no two writes meet.
template <class T>
void roll_up(diopiStreamHandle_t stream, const ConvolutionShape& shape, int64_t images, const T* columns, T* input,
             int64_t first_channel) {
    const Window rows = shape.windows.rows;
    const Window cols = shape.windows.columns;
    const int64_t channels = shape.channels;
    const int64_t width = shape.group_channels();
    const int64_t taps = shape.taps();
    for_runs(stream, images * shape.input_pixels(), width, DIOPI_LAMBDA(int64_t pixel, int64_t begin, int64_t end) {
        const int64_t pixel_row = pixel / cols.input;
        const int64_t image = pixel_row / rows.input;
        const int64_t y = pixel_row - image * rows.input;
        const int64_t x = pixel - pixel_row * cols.input;
        T* target = input + pixel * channels + first_channel;
        for (int64_t c = begin; c < end; ++c) target[c] = T(0);
        const Range vertical = rows.covering(y);
        const Range horizontal = cols.covering(x);
        for (int64_t oy = vertical.begin; oy < vertical.end; ++oy) {
            const int64_t ky = rows.place(oy, y);
            if (ky < 0) continue;
            for (int64_t ox = horizontal.begin; ox < horizontal.end; ++ox) {
                const int64_t kx = cols.place(ox, x);
                if (kx < 0) continue;
                const int64_t window = (image * rows.output + oy) * cols.output + ox;
                const T* source = columns + (window * taps + ky * cols.kernel + kx) * width;
                for (int64_t c = begin; c < end; ++c) target[c] += source[c];
            }
        }
    });
}

template <class T>
class Convolution {
public:
    Convolution(diopiContextHandle_t ctx, const ConvolutionShape& shape)
        : ctx_(ctx),
          stream_(stream_of(ctx)),
          shape_(shape),
          columns_(shape.pointwise() || shape.depthwise() ? nullptr : workspace_of<T>(ctx, column_elements())) {}

    // Adds to the output: the bias is there already, or zero.
    void forward(T* output, const T* input, const T* weight, double beta) {
        each_part(input, [&](const Part& part) {
            gemm(false, true, part.windows, shape_.group_filters(), shape_.row_length(), part.columns,
                 part.column_stride, filters_of(weight, part), shape_.row_length(), beta, output_of(output, part),
                 shape_.filters);
        });
    }

    void backward_weight(T* grad_weight, const T* grad_output, const T* input) {
        each_part(input, [&](const Part& part) {
            gemm(true, false, shape_.group_filters(), shape_.row_length(), part.windows, output_of(grad_output, part),
                 shape_.filters, part.columns, part.column_stride, part.first_image == 0 ? 0 : 1,
                 filters_of(grad_weight, part), shape_.row_length());
        });
    }

    void backward_input(T* grad_input, const T* grad_output, const T* weight) {
        each_piece([&](Part part) {
            T* target = grad_input + part.first_image * shape_.input_pixels() * shape_.channels;
            const int64_t first_channel = part.group * shape_.group_channels();
            T* columns = columns_ == nullptr ? target + first_channel : columns_;
            const int64_t stride = columns_ == nullptr ? shape_.channels : shape_.row_length();
            gemm(false, false, part.windows, shape_.row_length(), shape_.group_filters(), output_of(grad_output, part),
                 shape_.filters, filters_of(weight, part), shape_.row_length(), 0, columns, stride);
            if (columns_ != nullptr) roll_up(stream_, shape_, part.images, columns_, target, first_channel);
        });
    }

private:
    // One group of some images.
    struct Part {
        int64_t group;
        int64_t first_image;
        int64_t images;
        int64_t windows;
        const T* columns;
        int64_t column_stride;
    };

    int64_t column_elements() const { return shape_.images_at_once() * shape_.output_pixels() * shape_.row_length(); }

    template <class Pointer>
    Pointer output_of(Pointer output, const Part& part) const {
        return output + part.first_image * shape_.output_pixels() * shape_.filters +
               part.group * shape_.group_filters();
    }

    template <class Pointer>
    Pointer filters_of(Pointer weight, const Part& part) const {
        return weight + part.group * shape_.group_filters() * shape_.row_length();
    }

    template <class F>
    void each_piece(F&& f) {
        const int64_t step = columns_ == nullptr ? shape_.batch : shape_.images_at_once();
        for (int64_t first = 0; first < shape_.batch; first += step) {
            const int64_t images = std::min(step, shape_.batch - first);
            for (int64_t group = 0; group < shape_.groups; ++group)
                f(Part{group, first, images, images * shape_.output_pixels(), nullptr, 0});
        }
    }

    template <class F>
    void each_part(const T* input, F&& f) {
        each_piece([&](Part part) {
            const T* images = input + part.first_image * shape_.input_pixels() * shape_.channels;
            const int64_t first_channel = part.group * shape_.group_channels();
            if (columns_ == nullptr) {
                part.columns = images + first_channel;
                part.column_stride = shape_.channels;
            } else {
                unroll(stream_, shape_, part.images, images, first_channel, columns_);
                part.columns = columns_;
                part.column_stride = shape_.row_length();
            }
            f(part);
        });
    }

    void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
              int64_t ldb, double beta, T* c, int64_t ldc) {
        check(
            launch::gemm(stream_, dtype_of<T>, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, beta, c, ldc, 1, 0, 0, 0),
            "the matrix library refused a product");
    }

    diopiContextHandle_t ctx_;
    diopiStreamHandle_t stream_;
    ConvolutionShape shape_;
    T* columns_;  // null where there is nothing to unroll
};

template <class F>
void dispatch_product(diopiDtype_t dtype, F&& f) {
    if (!is_float_dtype(dtype)) fail_dtype(dtype);
    dispatch<Types<float, double>>(product_dtype(dtype), f);
}

void convolve(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, const TensorView& weight,
              const TensorView& bias, const ConvolutionShape& shape) {
    const diopiDtype_t dtype = product_dtype(out.dtype);
    const TensorView target = target_for(ctx, out, dtype);
    const bool empty_sum = shape.row_length() == 0;
    if (bias) copy_elements(ctx, target, bias);
    if (!bias && empty_sum) fill_zero(ctx, target);
    if (out.numel > 0 && !empty_sum) {
        const TensorView pixels = pixels_of(ctx, input, dtype);
        const TensorView filters = pixels_of(ctx, weight, dtype);
        dispatch_product(out.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            if (shape.depthwise()) {
                depthwise(ctx, shape, dtype, target.data, pixels.data, filters.data, bias.defined());
            } else {
                Convolution<T>(ctx, shape).forward(target.as<T>(), pixels.as<T>(), filters.as<T>(), bias ? 1 : 0);
            }
        });
    }
    copy_elements(ctx, channels_last(out), target);
}

void convolve_backward(diopiContextHandle_t ctx, const TensorView& grad_input, const TensorView& grad_weight,
                       const TensorView& grad_output, const TensorView& input, const TensorView& weight,
                       const ConvolutionShape& shape) {
    const diopiDtype_t dtype = product_dtype(grad_output.dtype);
    const TensorView grads = pixels_of(ctx, grad_output, dtype);
    const bool empty_sum = shape.batch * shape.output_pixels() * shape.filters == 0;
    dispatch_product(grad_output.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        Convolution<T> convolution(ctx, shape);
        if (grad_input && grad_input.numel > 0) {
            const TensorView target = target_for(ctx, grad_input, dtype);
            if (empty_sum) {
                fill_zero(ctx, target);
            } else if (shape.depthwise()) {
                depthwise_backward_input(ctx, shape, dtype, target.data, grads.data,
                                         pixels_of(ctx, weight, dtype).data);
            } else {
                convolution.backward_input(target.as<T>(), grads.as<T>(),
                                           pixels_of(ctx, weight, dtype).template as<T>());
            }
            copy_elements(ctx, channels_last(grad_input), target);
        }
        if (grad_weight && grad_weight.numel > 0) {
            const TensorView target = target_for(ctx, grad_weight, dtype);
            if (empty_sum) {
                fill_zero(ctx, target);
            } else if (shape.depthwise()) {
                depthwise_backward_weight(ctx, shape, dtype, target.data, grads.data,
                                          pixels_of(ctx, input, dtype).data);
            } else {
                convolution.backward_weight(target.as<T>(), grads.as<T>(),
                                            pixels_of(ctx, input, dtype).template as<T>());
            }
            copy_elements(ctx, channels_last(grad_weight), target);
        }
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
    return guarded([&] {
        const TensorView result = batch_of_planes(required_view(out, "out"));
        const TensorView planes = batch_of_planes(required_view(input, "input"));
        const TensorView filters = required_view(weight, "weight");
        convolve(ctx, result, planes, filters, view(bias),
                 shape_of(planes, filters, result, stride, padding, dilation, groups));
    });
}

diopiError_t diopiConvolution2dBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                        diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t weight, diopiSize_t*, diopiSize_t stride,
                                        diopiSize_t padding, diopiSize_t dilation, int64_t groups) {
    return guarded([&] {
        const TensorView grads = batch_of_planes(required_view(grad_output, "grad_output"));
        const TensorView planes = batch_of_planes(required_view(input, "input"));
        const TensorView filters = required_view(weight, "weight");
        const ConvolutionShape shape = shape_of(planes, filters, grads, stride, padding, dilation, groups);
        const TensorView grad_planes = grad_input == nullptr ? undefined_view() : batch_of_planes(view(grad_input));
        if (grad_input != nullptr || grad_weight != nullptr)
            convolve_backward(ctx, grad_planes, view(grad_weight), grads, planes, filters, shape);
        if (grad_bias != nullptr)
            sum_columns(ctx, view(grad_bias), joined(contiguous_as(ctx, channels_last(grads), grads.dtype), 0, 2));
    });
}

}  // namespace portable
}  // namespace impl
