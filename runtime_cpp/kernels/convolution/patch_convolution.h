// Convolutions of windows that lie side by side: images are cut into a matrix of patches, and the rest is one product.
#pragma once

#include <diopi/diopirt.h>

#include "convolution_geometry.h"
#include "convolution_shape.h"
#include "core/view.h"
#include "core/workspace.h"
#include "linear_algebra/matrix.h"

namespace diopi::kernels {

// The three products as the other ways to convolve have them, in the dtype of the tensors; `memory` says in which order a
// patch has its elements.
class PatchConvolution {
public:
    PatchConvolution(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, Memory memory)
        : ctx_(ctx),
          shape_(shape),
          dtype_(dtype),
          memory_(memory) {}

    static bool suits(const ConvolutionShape& shape) {
        const auto tiles = [](const Window& w) {
            return w.kernel == w.stride && w.padding == 0 && (w.kernel == 1 || w.dilation == 1);
        };
        const VolumeWindows& w = shape.windows;
        return shape.groups == 1 && shape.taps() > 1 && tiles(w.depth) && tiles(w.rows) && tiles(w.columns);
    }

    TensorView dense(const TensorView& tensor) const { return tensor; }

    void forward(const TensorView& out, const TensorView& images, const TensorView& filters, const TensorView& bias) {
        compute_dense(ctx_, out, dtype_, undefined_view(), false, [&](const TensorView& target) {
            const TensorView windows = joined(target, 0, 3), weight = matrix_transposed(rows_of(filters));
            if (bias) return multiply_and_add(ctx_, windows, cut(images), weight, bias);
            multiply(ctx_, windows, cut(images), weight, 1, 0);
        });
    }

    void backward_input(const TensorView& grad_input, const TensorView& grads, const TensorView& filters,
                        const TensorView& bias) {
        require(!bias, "patches take no bias here");
        const int64_t sizes[2] = {windows(), shape_.row_length()};
        const TensorView cut_up = temporary(ctx_, sizes, 2, dtype_);
        multiply(ctx_, cut_up, joined(dense_pixels(ctx_, grads, dtype_), 0, 3), rows_of(filters), 1, 0);
        if (!covered()) fill_zero(ctx_, grad_input);
        const TensorView places = patches_of(grad_input);
        copy_elements(ctx_, places, dense_view(cut_up.data, dtype_, places.sizes, places.ndim));
    }

    void backward_weight(const TensorView& grad_weight, const TensorView& grads, const TensorView& images) {
        compute_dense(
            ctx_, grad_weight, dtype_, undefined_view(), windows() == 0,
            [&](const TensorView& target) {
                const TensorView given = joined(dense_pixels(ctx_, grads, dtype_), 0, 3);
                multiply(ctx_, joined(target, 1, 4), matrix_transposed(given), cut(images), 1, 0);
            },
            memory_);
    }

private:
    int64_t windows() const { return shape_.batch * shape_.output_pixels(); }

    bool covered() const { return shape_.output_pixels() * shape_.taps() == shape_.input_pixels(); }

    // Filters as a matrix, [filters, elements of a patch].
    TensorView rows_of(const TensorView& filters) const {
        return joined(dense_pixels(ctx_, filters, dtype_, memory_), 1, 4);
    }

    // [windows, elements of a patch]
    TensorView cut(const TensorView& images) const {
        const TensorView patches = contiguous_as(ctx_, patches_of(images), dtype_);
        return joined(joined(patches, 4, 7), 0, 3);
    }

    // NCDHW volumes seen as windows and, in the memory's order, what is in each.
    TensorView patches_of(const TensorView& volumes) const {
        const Window* const axes[3] = {&shape_.windows.depth, &shape_.windows.rows, &shape_.windows.columns};
        const bool last = memory_ == Memory::kChannelsLast;
        TensorView result = volumes;
        result.ndim = 8;
        const auto give = [&](int dim, int64_t size, int64_t stride) {
            result.sizes[dim] = size;
            result.strides[dim] = stride;
        };
        give(last ? 7 : 4, shape_.channels, volumes.strides[1]);
        for (int i = 0; i < 3; ++i) {
            give(1 + i, axes[i]->output, volumes.strides[2 + i] * axes[i]->stride);
            give((last ? 4 : 5) + i, axes[i]->kernel, volumes.strides[2 + i]);
        }
        return recounted(result);
    }

    Context ctx_;
    ConvolutionShape shape_;
    diopiDtype_t dtype_;
    Memory memory_;
};

}  // namespace diopi::kernels
