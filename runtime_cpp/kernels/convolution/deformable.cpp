// Convolutions that sample where offsets lead, with masks or without, and their gradients: the matrix products of a
// convolution, by way of windows whose taps are moved.
#include <diopi/diopirt.h>

#include "column_products.h"
#include "convolution_geometry.h"
#include "deformed_columns.h"
#include "linear_algebra/matrix.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The numbers of the contract, in pairs of rows and columns.
struct Numbers {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t groups, parts;
};

// Handles as the contract names them; the mask is null where there is none, and the weight may be its own gradient, of
// which only the shape counts.
struct Operands {
    ConstTensor input, weight, offset, mask;
};

struct Gradients {
    Tensor input, offset, mask, weight, bias;  // null: not wanted
};

// The operands as volumes, checked.
class Deformable {
public:
    Deformable(Context ctx, const Operands& given, const TensorView& output, const Numbers& n)
        : ctx_(ctx),
          input_(volumes_of(required_view(given.input, "input"), 2)),
          weight_(volumes_of(required_view(given.weight, "weight"), 2)),
          offset_(volumes_of(required_view(given.offset, "offset"), 2)),
          mask_(given.mask == nullptr ? undefined_view() : volumes_of(view(given.mask), 2)),
          shape_(shape_of(input_, weight_, output,
                          {2, {n.stride, 2}, {n.padding, 2}, {n.dilation, 2}, n.groups, nullptr})),
          parts_(n.parts) {
        const Window &rows = shape_.windows.rows, &columns = shape_.windows.columns;
        require(rows.kernel == n.kernel[0] && columns.kernel == n.kernel[1],
                "a weight of %lld by %lld taps is none of a kernel of %lld by %lld", rows.kernel, columns.kernel,
                n.kernel[0], n.kernel[1]);
        require(parts_ > 0 && shape_.channels % parts_ == 0, "%lld channels do not fall into %lld deformable groups",
                shape_.channels, parts_);
        require_per_window(offset_, 2 * parts_ * shape_.taps(), "offset");
        if (mask_) require_per_window(mask_, parts_ * shape_.taps(), "mask");
    }

    template <class T>
    void forward(const TensorView& out, const TensorView& bias) const {
        compute_dense(ctx_, out, dtype_of<T>, bias, shape_.row_length() == 0, [&](const TensorView& target) {
            products(columns<T>())
                .forward(target.as<T>(), dense<T>(input_).template as<T>(), dense<T>(weight_).template as<T>(),
                         bias ? 1 : 0);
        });
    }

    template <class T>
    void backward(const Gradients& wanted, const TensorView& incoming, double scale) const {
        const TensorView grads = dense<T>(incoming), pixels = dense<T>(input_), none = undefined_view();
        if (wanted.input != nullptr) {
            DeformedColumns<T> moved = columns<T>();
            moved.input = pixels.as<T>();
            const TensorView grad_input = gradient(wanted.input, input_, "the gradient of the input");
            with_zeros<T>(wanted.offset, offset_, moved.grad_offsets, [&] {
                with_zeros<T>(wanted.mask, mask_, moved.grad_masks, [&] {
                    compute_dense(ctx_, grad_input, dtype_of<T>, none, grads.numel == 0, [&](const TensorView& target) {
                        products(moved).backward_input(target.as<T>(), grads.as<T>(),
                                                       dense<T>(weight_).template as<T>(), 0);
                    });
                });
            });
        }
        if (wanted.weight != nullptr) {
            const TensorView grad_weight = gradient(wanted.weight, weight_, "the gradient of the weight");
            compute_dense(ctx_, grad_weight, dtype_of<T>, none, grads.numel == 0, [&](const TensorView& target) {
                products(columns<T>()).backward_weight(target.as<T>(), grads.as<T>(), pixels.as<T>(), scale);
            });
        }
        if (wanted.bias != nullptr) sum_around(ctx_, view(wanted.bias), incoming, 1);
    }

private:
    void require_per_window(const TensorView& tensor, int64_t channels, const char* name) const {
        const Window &rows = shape_.windows.rows, &columns = shape_.windows.columns;
        require(tensor.sizes[0] == shape_.batch && tensor.sizes[1] == channels && tensor.sizes[3] == rows.output &&
                    tensor.sizes[4] == columns.output,
                "'%s' is expected to have %lld channels of %lld by %lld for each image", name, channels, rows.output,
                columns.output);
    }

    static TensorView gradient(Tensor handle, const TensorView& like, const char* name) {
        const TensorView result = volumes_of(view(handle), 2);
        require(result.same_sizes(like), "%s has another shape", name);
        return result;
    }

    template <class T>
    TensorView dense(const TensorView& tensor) const {
        return dense_pixels(ctx_, tensor, dtype_of<T>);
    }

    template <class T>
    DeformedColumns<T> columns() const {
        DeformedColumns<T> result;
        result.deformation = {shape_.windows.rows,
                              shape_.windows.columns,
                              shape_.taps(),
                              parts_,
                              shape_.channels / parts_,
                              dense<T>(offset_).template as<T>(),
                              mask_ ? dense<T>(mask_).template as<T>() : nullptr};
        return result;
    }

    template <class T>
    ColumnProducts<T, DeformedColumns<T>> products(const DeformedColumns<T>& columns) const {
        return {ctx_, shape_, columns};
    }

    // Calls f while `sums` are zeros to add to, which then become the gradient.
    template <class T, class F>
    void with_zeros(Tensor wanted, const TensorView& like, T*& sums, F&& f) const {
        if (wanted == nullptr) return f();
        const TensorView result = gradient(wanted, like, "the gradient of the offsets or masks");
        const TensorView target = target_for(ctx_, result, dtype_of<T>);
        fill_zero(ctx_, target);
        sums = target.template as<T>();
        f();
        copy_elements(ctx_, channels_last(result), target);
    }

    Context ctx_;
    TensorView input_, weight_, offset_, mask_;
    ConvolutionShape shape_;
    int64_t parts_;
};

diopiError_t convolve(Context ctx, Tensor output, const Operands& operands, ConstTensor bias, const Numbers& numbers) {
    return guarded([&] {
        const TensorView out = volumes_of(required_view(output, "output"), 2);
        const Deformable convolution(ctx, operands, out, numbers);
        dispatch_product(out.dtype,
                         [&](auto type) { convolution.forward<typename decltype(type)::type>(out, view(bias)); });
    });
}

diopiError_t convolve_backward(Context ctx, const Gradients& wanted, ConstTensor grad_output, const Operands& operands,
                               const Numbers& numbers, double scale = 1) {
    return guarded([&] {
        const TensorView incoming = volumes_of(required_view(grad_output, "the gradient of the output"), 2);
        const Deformable convolution(ctx, operands, incoming, numbers);
        dispatch_product(incoming.dtype, [&](auto type) {
            convolution.backward<typename decltype(type)::type>(wanted, incoming, scale);
        });
    });
}

}  // namespace

// The callers' working memory, `columns` and `ones`, is not used, nor `im2col_step`, which shares it out.

diopiError_t diopiDeformConvMmcv(Context ctx, Tensor output, Tensor, Tensor, ConstTensor input, ConstTensor weight,
                                 ConstTensor offset, int64_t kW, int64_t kH, int64_t dW, int64_t dH, int64_t padW,
                                 int64_t padH, int64_t dilationW, int64_t dilationH, int64_t groups,
                                 int64_t deform_groups, int64_t) {
    return convolve(ctx, output, {input, weight, offset, nullptr}, nullptr,
                    {{kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, groups, deform_groups});
}

diopiError_t diopiDeformConvBackwardInputMmcv(Context ctx, Tensor gradInput, Tensor gradOffset, ConstTensor input,
                                              ConstTensor offset, ConstTensor gradOutput, ConstTensor weight,
                                              ConstTensor, int64_t kW, int64_t kH, int64_t dW, int64_t dH, int64_t padW,
                                              int64_t padH, int64_t dilationW, int64_t dilationH, int64_t groups,
                                              int64_t deform_groups, int64_t) {
    return convolve_backward(ctx, {gradInput, gradOffset, nullptr, nullptr, nullptr}, gradOutput,
                             {input, weight, offset, nullptr},
                             {{kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, groups, deform_groups});
}

diopiError_t diopiDeformConvBackwardParametersMmcv(Context ctx, Tensor gradOutput, Tensor gradWeight, ConstTensor input,
                                                   ConstTensor offset, ConstTensor, ConstTensor, int64_t kW, int64_t kH,
                                                   int64_t dW, int64_t dH, int64_t padW, int64_t padH,
                                                   int64_t dilationW, int64_t dilationH, int64_t groups,
                                                   int64_t deform_groups, int64_t, float scale) {
    return convolve_backward(
        ctx, {nullptr, nullptr, nullptr, gradWeight, nullptr}, gradOutput, {input, gradWeight, offset, nullptr},
        {{kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, groups, deform_groups}, static_cast<double>(scale));
}

diopiError_t diopiModulatedDeformConvMmcv(Context ctx, Tensor output, Tensor, Tensor, ConstTensor input,
                                          ConstTensor weight, ConstTensor bias, ConstTensor offset, ConstTensor mask,
                                          int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW,
                                          int64_t dilationH, int64_t dilationW, int64_t groups, int64_t deform_groups,
                                          const bool with_bias) {
    return convolve(ctx, output, {input, weight, offset, mask}, with_bias ? bias : nullptr,
                    {{kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, groups, deform_groups});
}

diopiError_t diopiModulatedDeformConvBackwardMmcv(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                                  Tensor grad_offset, Tensor grad_mask, ConstTensor input,
                                                  ConstTensor weight, ConstTensor, ConstTensor, ConstTensor offset,
                                                  ConstTensor mask, ConstTensor, ConstTensor grad_output, int64_t kH,
                                                  int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW,
                                                  int64_t dilationH, int64_t dilationW, int64_t groups,
                                                  int64_t deform_groups, const bool with_bias) {
    if (!with_bias) grad_bias = nullptr;
    return convolve_backward(ctx, {grad_input, grad_offset, grad_mask, grad_weight, grad_bias}, grad_output,
                             {input, weight, offset, mask},
                             {{kH, kW}, {dH, dW}, {padH, padW}, {dilationH, dilationW}, groups, deform_groups});
}

}  // namespace impl::portable
