// Convolutions of two and three dimensions and their gradients, in memory with the channels innermost: windows are laid
// out as rows of a matrix, the rest is matrix products. A transposed convolution is the gradient of a convolution by
// its input, and has its gradients with the roles of input and output exchanged.
#include <diopi/diopirt.h>

#include <algorithm>

#include "column_products.h"
#include "convolution_geometry.h"
#include "core/team.h"
#include "core/workspace.h"
#include "depthwise.h"
#include "direct_convolution.h"
#include "launch/library_convolution.h"
#include "linear_algebra/matrix.h"
#include "patch_convolution.h"
#include "space/divider.h"
#include "window_columns.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

using diopi::launch::ConvolutionStep;

TensorView filters_of(const TensorView& weight, int rank) {
    // PyTorch's one convolution operator comes here with any rank; this status sends the others to the CPU.
    if (weight.ndim == 5 && rank == 2) fail(diopi5DNotSupported, "a 2-D convolution takes no 3-D input");
    require(weight.ndim == rank + 2, "the weight of this convolution has %d dimensions, expected %d", weight.ndim,
            rank + 2);
    return volumes_of(weight, rank);
}

// The three products of a convolution are forward(), backward_input() and backward_weight(). Results are of any layout and
// float dtype; what is read is dense().
class Products {
public:
    Products(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, Memory memory)
        : ctx_(ctx),
          shape_(shape),
          dtype_(dtype),
          memory_(memory) {}

    TensorView dense(const TensorView& tensor) const { return dense_pixels(ctx_, tensor, dtype_, memory_); }

protected:
    template <class F>
    void compute(const TensorView& result, const TensorView& bias, bool empty, F&& f) const {
        compute_dense(ctx_, result, dtype_, bias, empty, f, memory_);
    }

    Context ctx_;
    ConvolutionShape shape_;  // as the tensors have it
    diopiDtype_t dtype_;
    Memory memory_;
};

template <class T>
class PortableConvolution : public Products {
public:
    PortableConvolution(Context ctx, const ConvolutionShape& shape)
        : Products(ctx, shape, dtype_of<T>, Memory::kChannelsLast),
          products_(ctx, shape, WindowColumns{}) {}

    void forward(const TensorView& out, const TensorView& pixels, const TensorView& filters, const TensorView& bias) {
        compute(out, bias, shape_.row_length() == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise(ctx_, shape_, dtype_, target.data, pixels.data, filters.data, bias.defined());
            } else {
                products_.forward(target.as<T>(), pixels.as<T>(), filters.as<T>(), bias ? 1 : 0);
            }
        });
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        compute(grad_input, bias, grads.numel == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise_backward_input(ctx_, shape_, dtype_, target.data, grads.data, filters.data, bias.defined());
            } else {
                products_.backward_input(target.as<T>(), grads.as<T>(), filters.as<T>(), bias ? 1 : 0);
            }
        });
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& pixels) {
        compute(grad_weight, undefined_view(), grads.numel == 0, [&](const TensorView& target) {
            if (shape_.depthwise()) {
                depthwise_backward_weight(ctx_, shape_, dtype_, target.data, grads.data, pixels.data);
            } else {
                products_.backward_weight(target.as<T>(), grads.as<T>(), pixels.as<T>());
            }
        });
    }

private:
    ColumnProducts<T, WindowColumns> products_;
};

// The same in the memory that torch's planes mostly have, without a matrix of windows.
template <class T>
class DirectConvolution : public Products {
public:
    DirectConvolution(Context ctx, const ConvolutionShape& shape)
        : Products(ctx, shape, dtype_of<T>, Memory::kChannelsFirst) {}

    void forward(const TensorView& out, const TensorView& planes, const TensorView& filters, const TensorView& bias) {
        compute(out, bias, shape_.row_length() == 0, [&](const TensorView& target) {
            direct_convolution(ctx_, shape_, target.as<T>(), planes.as<const T>(), filters.as<const T>(),
                               bias.defined());
        });
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        compute(grad_input, bias, grads.numel == 0, [&](const TensorView& target) {
            direct_backward_input(ctx_, shape_, target.as<T>(), grads.as<const T>(), filters.as<const T>(),
                                  bias.defined());
        });
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& planes) {
        constexpr int64_t few = 512;  // windows: the sums of fewer products are better made side by side
        const Window& depth = shape_.windows.depth;
        const bool flat = depth.input == 1 && depth.kernel == 1 && depth.padding == 0;
        if (!flat || shape_.batch * shape_.output_pixels() < few) {
            PortableConvolution<T> by_columns(ctx_, shape_);
            return by_columns.backward_weight(grad_weight, by_columns.dense(grads), by_columns.dense(planes));
        }
        compute(grad_weight, undefined_view(), grads.numel == 0, [&](const TensorView& target) {
            direct_backward_weight(ctx_, shape_, target.as<T>(), grads.as<const T>(), planes.as<const T>());
        });
    }
};

// The same for windows of one element: the planes of an image are a matrix, [channels, pixels], as they lie in memory.
template <class T>
class PointwiseConvolution : public Products {
public:
    PointwiseConvolution(Context ctx, const ConvolutionShape& shape)
        : Products(ctx, shape, dtype_of<T>, Memory::kChannelsFirst),
          pixels_(shape.output_pixels()),
          inputs_(shape.group_channels()),
          outputs_(shape.group_filters()) {}

    static bool suits(const ConvolutionShape& shape) {
        constexpr int64_t few = 128;  // pixels, of which images side by side make better products
        return shape.pointwise() && shape.output_pixels() >= few;
    }

    void forward(const TensorView& out, const TensorView& planes, const TensorView& filters, const TensorView& bias) {
        compute_groups(out, bias, shape_.row_length() == 0, [&](const TensorView& target, int64_t group) {
            multiply(false, false, outputs_, pixels_, inputs_, of_group(filters, group, outputs_ * inputs_), inputs_, 0,
                     of_group(planes, group, inputs_ * pixels_), pixels_, shape_.channels * pixels_, bias ? 1 : 0,
                     of_group(target, group, outputs_ * pixels_), pixels_, shape_.filters * pixels_, shape_.batch);
        });
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        compute_groups(grad_input, bias, grads.numel == 0, [&](const TensorView& target, int64_t group) {
            multiply(true, false, inputs_, pixels_, outputs_, of_group(filters, group, outputs_ * inputs_), inputs_, 0,
                     of_group(grads, group, outputs_ * pixels_), pixels_, shape_.filters * pixels_, bias ? 1 : 0,
                     of_group(target, group, inputs_ * pixels_), pixels_, shape_.channels * pixels_, shape_.batch);
        });
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& planes) {
        compute_groups(grad_weight, undefined_view(), grads.numel == 0, [&](const TensorView& target, int64_t group) {
            for (int64_t image = 0; image < shape_.batch; ++image) {
                const T* own_grads = of_group(grads, group, outputs_ * pixels_) + image * shape_.filters * pixels_;
                const T* own_planes = of_group(planes, group, inputs_ * pixels_) + image * shape_.channels * pixels_;
                multiply(false, true, outputs_, inputs_, pixels_, own_grads, pixels_, 0, own_planes, pixels_, 0,
                         image > 0 ? 1 : 0, of_group(target, group, outputs_ * inputs_), inputs_, 0, 1);
            }
        });
    }

private:
    static T* of_group(const TensorView& tensor, int64_t group, int64_t elements) {
        return tensor.as<T>() + group * elements;
    }

    template <class F>
    void compute_groups(const TensorView& result, const TensorView& bias, bool empty, F&& f) {
        compute(result, bias, empty, [&](const TensorView& target) {
            for (int64_t group = 0; group < shape_.groups; ++group) f(target, group);
        });
    }

    void multiply(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, int64_t step_a,
                  const T* b, int64_t ldb, int64_t step_b, double beta, T* c, int64_t ldc, int64_t step_c,
                  int64_t batch) const {
        check(diopi::launch::gemm(stream_of(ctx_), dtype_, trans_a, trans_b, m, n, k, 1, a, lda, b, ldb, beta, c, ldc,
                                  batch, step_a, step_b, step_c),
              "the matrix library refused a product");
    }

    int64_t pixels_, inputs_, outputs_;  // channels in a group
};

#if defined(DIOPI_LAUNCHER_HAS_CONVOLUTIONS)

// Matrix units multiply halves in steps of so many channels.
constexpr int64_t kChannelsOfHalves = 8;

template <class T>
struct AddPerChannel {
    T* to;
    const T* values;
    Divider by_pixels, by_channels;

    DIOPI_HD void operator()(int64_t i) const {
        int64_t plane = by_pixels.quotient(i);
        to[i] += values[by_channels.split(plane)];
    }
};

// The same by the vendor's library, in the tensors' own dtype; images of halves get channels of zeros up to a whole
// number of steps.
class LibraryProducts : public Products {
public:
    LibraryProducts(Context ctx, const ConvolutionShape& shape, diopiDtype_t given, diopiDtype_t dtype, int rank,
                    Memory memory, bool biased)
        : Products(ctx, shape, dtype, memory) {
        const VolumeWindows& w = shape.windows;
        const bool pads = dtype == given && dtype != product_dtype(dtype) && !shape.depthwise();
        const int64_t step = pads ? kChannelsOfHalves : 1, channels = (shape.channels + step - 1) / step * step;
        problem_ = {ConvolutionStep::kForward,
                    dtype,
                    given != dtype,
                    memory == Memory::kChannelsLast,
                    rank,
                    {shape.batch, channels, w.depth.input, w.rows.input, w.columns.input},
                    {shape.filters, channels / shape.groups, w.depth.kernel, w.rows.kernel, w.columns.kernel},
                    {shape.batch, shape.filters, w.depth.output, w.rows.output, w.columns.output},
                    {w.depth.padding, w.rows.padding, w.columns.padding},
                    {w.depth.stride, w.rows.stride, w.columns.stride},
                    {w.depth.dilation, w.rows.dilation, w.columns.dilation},
                    shape.groups,
                    biased};
    }

    bool has(ConvolutionStep step) const { return diopi::launch::has_convolution(problem_of(step)); }

    void forward(const TensorView& out, const TensorView& pixels, const TensorView& filters, const TensorView& bias) {
        compute(ConvolutionStep::kForward, out, padded(pixels), padded(filters), bias);
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        compute_padded(ConvolutionStep::kBackwardInput, grad_input, grads, padded(filters), bias);
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& pixels) {
        if (!has(ConvolutionStep::kBackwardWeight))
            return dispatch_product(dtype_, [&](auto type) {
                PortableConvolution<typename decltype(type)::type> own(ctx_, shape_);
                own.backward_weight(grad_weight, own.dense(given_in(grads, memory_)),
                                    own.dense(given_in(pixels, memory_)));
            });
        compute_padded(ConvolutionStep::kBackwardWeight, grad_weight, grads, padded(pixels), undefined_view());
    }

private:
    diopi::launch::LibraryConvolution problem_of(ConvolutionStep step) const {
        diopi::launch::LibraryConvolution problem = problem_;
        problem.step = step;
        problem.biased = problem_.biased && step == ConvolutionStep::kForward;
        return problem;
    }

    bool pads() const { return shape_.group_channels() != problem_.filters[1]; }

    // A tensor with the library's channels, not yet written.
    TensorView with_all_channels(const TensorView& tensor, int dim) const {
        int64_t sizes[5];
        std::copy_n(tensor.sizes, 5, sizes);
        sizes[dim] = problem_.filters[1];
        return temporary(ctx_, sizes, 5, dtype_);
    }

    // Images or filters as dense() gives them.
    TensorView padded(const TensorView& dense) const {
        if (!pads()) return dense;
        const int dim = memory_ == Memory::kChannelsLast ? 4 : 1;
        const TensorView all = with_all_channels(dense, dim);
        fill_zero(ctx_, all);
        copy_elements(ctx_, narrowed(all, dim, 0, shape_.group_channels()), dense);
        return all;
    }

    // A result with the channels of images or filters; halves, which are padded, have no bias.
    void compute_padded(ConvolutionStep step, const TensorView& result, const TensorView& a, const TensorView& b,
                        const TensorView& bias) {
        if (!pads()) return compute(step, result, a, b, bias);
        const TensorView all = with_all_channels(result, 1);
        compute(step, all, a, b, undefined_view());
        copy_elements(ctx_, result, narrowed(all, 1, 0, shape_.group_channels()));
    }

    void compute(ConvolutionStep step, const TensorView& result, const TensorView& a, const TensorView& b,
                 const TensorView& bias) {
        const diopi::launch::LibraryConvolution problem = problem_of(step);
        const bool empty = a.numel == 0 || b.numel == 0, follows = bias && !problem.biased && !empty;
        const TensorView added = bias ? contiguous_as(ctx_, bias, dtype_) : bias;
        Products::compute(result, problem.biased || follows ? undefined_view() : bias, empty,
                          [&](const TensorView& target) {
                              check(diopi::launch::convolve(stream_of(ctx_), problem, a.data, b.data,
                                                            problem.biased ? added.data : nullptr, target.data,
                                                            [&](int64_t bytes) { return workspace(ctx_, bytes); }),
                                    "the library refused a convolution");
                              if (follows) add_per_channel(target, added);
                          });
    }

    void add_per_channel(const TensorView& target, const TensorView& bias) const {
        const Divider by_pixels(memory_ == Memory::kChannelsLast ? 1 : target.numel / target.sizes[0] / bias.numel);
        const Divider by_channels(bias.numel);
        dispatch_product(dtype_, [&](auto type) {
            using T = typename decltype(type)::type;
            const AddPerChannel<T> task{target.as<T>(), bias.as<const T>(), by_pixels, by_channels};
            check_launch(diopi::launch::parallel_for(stream_of(ctx_), target.numel, task));
        });
    }

    diopi::launch::LibraryConvolution problem_;
};

#endif

bool lies_channels_last(const TensorView& volumes) {
    return !volumes.contiguous() && channels_last(volumes).contiguous();
}

// Calls f with the convolution that computes for `images` of a batch, of which `first` is wanted, and maybe the gradient
// of the weight. `convolved` is what it makes of them, or is given: the larger of both says in which memory.
template <class F>
void with_convolution(Context ctx, const TensorView& images, const TensorView& convolved, const ConvolutionShape& shape,
                      [[maybe_unused]] int rank, [[maybe_unused]] bool biased, [[maybe_unused]] ConvolutionStep first,
                      F&& f) {
    if (!is_float_dtype(images.dtype)) fail_dtype(images.dtype);  // no library is asked for others
    [[maybe_unused]] const bool last = lies_channels_last(images.numel < convolved.numel ? convolved : images);
#if defined(DIOPI_LAUNCHER_HAS_CONVOLUTIONS)
    // libraries round the sums of halves more than once in volumes, before a bias that they do not add themselves, and where
    // channels are no multiple of a matrix unit's, to which those of one group are padded
    const bool whole = shape.groups == 1 || shape.group_channels() % kChannelsOfHalves == 0;
    const bool matrices = whole && shape.group_filters() % kChannelsOfHalves == 0;
    const bool exact = rank == 2 && (matrices || shape.depthwise());
    const diopiDtype_t wide = product_dtype(images.dtype);
    const Memory natural = last || shape.depthwise() ? Memory::kChannelsLast : Memory::kChannelsFirst;
    const bool thin = shape.channels < kChannelsOfHalves;
    if (thin && !(biased && first == ConvolutionStep::kBackwardInput) && PatchConvolution::suits(shape)) {
        PatchConvolution patches(ctx, shape, images.dtype,
                                 lies_channels_last(images) ? Memory::kChannelsLast : Memory::kChannelsFirst);
        return f(patches);
    }
    const auto serves = [&](diopiDtype_t dtype, Memory memory, bool adds) {
        LibraryProducts library(ctx, shape, images.dtype, dtype, rank, memory, adds);
        if (!library.has(first)) return false;
        f(library);
        return true;
    };
    if (biased && exact && first == ConvolutionStep::kForward) {
        if (serves(images.dtype, natural, true)) return;
        if (images.dtype != wide && serves(images.dtype, Memory::kChannelsLast, true)) return;
    }
    if (serves(exact && !biased ? images.dtype : wide, natural, false)) return;
#endif
    dispatch_product(images.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (Team::kAlone) {
            if (!last && PointwiseConvolution<T>::suits(shape)) {
                PointwiseConvolution<T> pointwise(ctx, shape);
                return f(pointwise);
            }
            if (!last && has_direct_convolution(shape)) {
                DirectConvolution<T> direct(ctx, shape);
                return f(direct);
            }
        }
        PortableConvolution<T> convolution(ctx, shape);
        f(convolution);
    });
}

diopiError_t convolve(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                      const Geometry& geometry) {
    return guarded([&] {
        const TensorView filters = filters_of(required_view(weight, "weight"), geometry.rank);
        const TensorView result = volumes_of(required_view(out, "out"), geometry.rank);
        const TensorView images = volumes_of(required_view(input, "input"), geometry.rank);
        const bool is_transposed = geometry.output_padding != nullptr;
        const ConvolutionShape shape =
            is_transposed ? shape_of(result, filters, images, geometry) : shape_of(images, filters, result, geometry);
        const ConvolutionStep step = is_transposed ? ConvolutionStep::kBackwardInput : ConvolutionStep::kForward;
        with_convolution(ctx, images, result, shape, geometry.rank, bias != nullptr, step, [&](auto& convolution) {
            if (is_transposed) {
                convolution.backward_input(result, convolution.dense(images), convolution.dense(filters), view(bias));
            } else {
                convolution.forward(result, convolution.dense(images), convolution.dense(filters), view(bias));
            }
        });
    });
}

struct Gradients {
    Tensor input, weight, bias;  // null: not wanted
};

diopiError_t convolve_backward(Context ctx, const Gradients& wanted, ConstTensor grad_output, ConstTensor input,
                               ConstTensor weight, const Geometry& geometry) {
    return guarded([&] {
        const TensorView filters = filters_of(required_view(weight, "weight"), geometry.rank);
        const TensorView incoming = volumes_of(required_view(grad_output, "grad_output"), geometry.rank);
        const TensorView images = volumes_of(required_view(input, "input"), geometry.rank);
        const bool is_transposed = geometry.output_padding != nullptr;
        const ConvolutionShape shape = is_transposed ? shape_of(incoming, filters, images, geometry)
                                                     : shape_of(images, filters, incoming, geometry);
        const TensorView none = undefined_view();
        const ConvolutionStep by_input = is_transposed ? ConvolutionStep::kForward : ConvolutionStep::kBackwardInput;
        const ConvolutionStep first = wanted.input != nullptr ? by_input : ConvolutionStep::kBackwardWeight;
        with_convolution(ctx, images, incoming, shape, geometry.rank, false, first, [&](auto& convolution) {
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
            if (wanted.bias != nullptr) sum_around(ctx, view(wanted.bias), incoming, 1);
        });
    });
}

}  // namespace

diopiError_t diopiConvolution2d(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                                Sizes stride, Sizes padding, Sizes dilation, int64_t groups) {
    return convolve(ctx, out, input, weight, bias, {2, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution2dBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                        ConstTensor grad_output, ConstTensor input, ConstTensor weight, Sizes*,
                                        Sizes stride, Sizes padding, Sizes dilation, int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {2, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution3d(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                                Sizes stride, Sizes padding, Sizes dilation, int64_t groups) {
    return convolve(ctx, out, input, weight, bias, {3, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvolution3dBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                        ConstTensor grad_output, ConstTensor input, ConstTensor weight, Sizes*,
                                        Sizes stride, Sizes padding, Sizes dilation, int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {3, stride, padding, dilation, groups, nullptr});
}

diopiError_t diopiConvTranspose2d(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                                  Sizes stride, Sizes padding, Sizes output_padding, int64_t groups, Sizes dilation) {
    return convolve(ctx, out, input, weight, bias, {2, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose2dBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                          ConstTensor grad_output, ConstTensor input, ConstTensor weight, Sizes*,
                                          Sizes stride, Sizes padding, Sizes dilation, Sizes output_padding,
                                          int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {2, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose3d(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                                  Sizes stride, Sizes padding, Sizes output_padding, int64_t groups, Sizes dilation) {
    return convolve(ctx, out, input, weight, bias, {3, stride, padding, dilation, groups, &output_padding});
}

diopiError_t diopiConvTranspose3dBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                          ConstTensor grad_output, ConstTensor input, ConstTensor weight, Sizes*,
                                          Sizes stride, Sizes padding, Sizes dilation, Sizes output_padding,
                                          int64_t groups) {
    return convolve_backward(ctx, {grad_input, grad_weight, grad_bias}, grad_output, input, weight,
                             {3, stride, padding, dilation, groups, &output_padding});
}

}  // namespace impl::portable
