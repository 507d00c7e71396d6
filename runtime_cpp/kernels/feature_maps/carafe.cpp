// Content-aware upsampling (CARAFE): each pixel is the weighted sum of a window around its source. Gradients gather,
// too.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Groups of channels share the weights of a window.
struct Reassembly {
    int64_t size, groups, factor;

    DIOPI_HD int64_t taps() const { return size * size; }
    // From the pixel to the tap in row or column k of its window.
    DIOPI_HD int64_t reach(int64_t k) const { return k - size / 2; }
};

template <class T>
struct UpsampleTask {
    Elements<T, 4> out;
    Elements<const T, 4> features, masks;
    Reassembly form;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = out.position(i);
        const int64_t first = at[1] / (features.sizes[1] / form.groups) * form.taps();
        AccumulateType<T> sum(0);
        for (int64_t tap = 0; tap < form.taps(); ++tap) {
            const int64_t y = at[2] / form.factor + form.reach(tap / form.size);
            const int64_t x = at[3] / form.factor + form.reach(tap % form.size);
            if (y < 0 || y >= features.sizes[2] || x < 0 || x >= features.sizes[3]) continue;
            sum += cast<AccumulateType<T>>(features(at[0], at[1], y, x)) *
                   cast<AccumulateType<T>>(masks(at[0], first + tap, at[2], at[3]));
        }
        out(at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

// A pixel gathers from the windows that hold it: those of `factor` squared pixels for each of its neighbours.
template <class T>
struct FeatureGradTask {
    Elements<T, 4> grad_features;
    Elements<const T, 4> grad_output, masks;
    Reassembly form;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = grad_features.position(i);
        const int64_t first = at[1] / (grad_features.sizes[1] / form.groups) * form.taps();
        AccumulateType<T> sum(0);
        for (int64_t tap = 0; tap < form.taps(); ++tap) {
            const int64_t top = at[2] - form.reach(tap / form.size), left = at[3] - form.reach(tap % form.size);
            if (top < 0 || top >= grad_features.sizes[2] || left < 0 || left >= grad_features.sizes[3]) continue;
            for (int64_t y = top * form.factor; y < (top + 1) * form.factor; ++y) {
                for (int64_t x = left * form.factor; x < (left + 1) * form.factor; ++x) {
                    sum += cast<AccumulateType<T>>(grad_output(at[0], at[1], y, x)) *
                           cast<AccumulateType<T>>(masks(at[0], first + tap, y, x));
                }
            }
        }
        grad_features(at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

template <class T>
struct MaskGradTask {
    Elements<T, 4> grad_masks;
    Elements<const T, 4> grad_output, features;
    Reassembly form;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = grad_masks.position(i);
        const int64_t group = at[1] / form.taps(), tap = at[1] % form.taps();
        const int64_t y = at[2] / form.factor + form.reach(tap / form.size);
        const int64_t x = at[3] / form.factor + form.reach(tap % form.size), channels = features.sizes[1] / form.groups;
        const bool inside = y >= 0 && y < features.sizes[2] && x >= 0 && x < features.sizes[3];
        AccumulateType<T> sum(0);
        for (int64_t c = group * channels; inside && c < (group + 1) * channels; ++c) {
            sum += cast<AccumulateType<T>>(grad_output(at[0], c, at[2], at[3])) *
                   cast<AccumulateType<T>>(features(at[0], c, y, x));
        }
        grad_masks(at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }
};

Reassembly reassembly_of(const TensorView& features, const TensorView& masks, const TensorView& enlarged, int64_t size,
                         int64_t groups, int64_t factor) {
    require(size > 0 && size % 2 == 1, "'kernel_size' is %lld, expected an odd number", size);
    require(groups > 0 && factor > 0, "'group_size' and 'scale_factor' are not positive");
    require(features.ndim == 4 && features.sizes[1] % groups == 0, "the channels are no %lld equal groups", groups);
    require_sizes(enlarged, "the enlarged map",
                  {features.sizes[0], features.sizes[1], features.sizes[2] * factor, features.sizes[3] * factor});
    require_sizes(masks, "masks", {enlarged.sizes[0], groups * size * size, enlarged.sizes[2], enlarged.sizes[3]});
    return {size, groups, factor};
}

void upsample(Context ctx, Tensor output, const TensorView& features, ConstTensor masks, int64_t size, int64_t groups,
              int64_t factor) {
    const TensorView result = required_view(output, "output"), weights = required_view(masks, "masks");
    const Reassembly form = reassembly_of(features, weights, result, size, groups, factor);
    for_each_typed<Float, UpsampleTask>(ctx, result.dtype, result.numel, Argument{result, "output"},
                                        Argument{features, "features"}, Argument{weights, "masks"}, form);
}

void upsample_backward(Context ctx, Tensor bottom_grad, Tensor mask_grad, ConstTensor top_grad,
                       const TensorView& features, ConstTensor masks, int64_t size, int64_t groups, int64_t factor) {
    const TensorView result = required_view(bottom_grad, "bottom_grad");
    const TensorView grads = required_view(top_grad, "top_grad"), weights = required_view(masks, "masks");
    const TensorView mask_result = required_view(mask_grad, "mask_grad");
    const Reassembly form = reassembly_of(features, weights, grads, size, groups, factor);
    require_same_sizes(result, features, "bottom_grad", "features");
    require_same_sizes(mask_result, weights, "mask_grad", "masks");
    const Argument grad_output{grads, "top_grad"};
    for_each_typed<Float, FeatureGradTask>(ctx, result.dtype, result.numel, Argument{result, "bottom_grad"},
                                           grad_output, Argument{weights, "masks"}, form);
    for_each_typed<Float, MaskGradTask>(ctx, result.dtype, mask_result.numel, Argument{mask_result, "mask_grad"},
                                        grad_output, Argument{features, "features"}, form);
}

// [images, rows, columns, channels] as [images, channels, rows, columns].
TensorView channels_second(const TensorView& tensor) {
    require(tensor.ndim == 4, "'rfeatures' has %d dimensions, expected 4", tensor.ndim);
    return transposed(transposed(tensor, 1, 3), 2, 3);
}

}  // namespace

// Of the memory with the channels last only the features are kept: the others would be for a kernel that needs them.
diopiError_t diopiCarafeMmcv(Context ctx, Tensor rfeatures, Tensor, Tensor, Tensor output, ConstTensor features,
                             ConstTensor masks, int64_t kernel_size, int64_t group_size, int64_t scale_factor) {
    return guarded([&] {
        const TensorView source = required_view(features, "features");
        upsample(ctx, output, source, masks, kernel_size, group_size, scale_factor);
        copy_elements(ctx, channels_second(required_view(rfeatures, "rfeatures")), source);
    });
}

diopiError_t diopiCarafeBackwardMmcv(Context ctx, Tensor, Tensor, Tensor, Tensor, Tensor bottom_grad, Tensor mask_grad,
                                     ConstTensor top_grad, ConstTensor rfeatures, ConstTensor masks,
                                     int64_t kernel_size, int64_t group_size, int64_t scale_factor) {
    return guarded([&] {
        const TensorView features = channels_second(required_view(rfeatures, "rfeatures"));
        upsample_backward(ctx, bottom_grad, mask_grad, top_grad, features, masks, kernel_size, group_size,
                          scale_factor);
    });
}

diopiError_t diopiCarafeNaiveMmcv(Context ctx, Tensor output, ConstTensor features, ConstTensor masks,
                                  int64_t kernel_size, int64_t group_size, int64_t scale_factor) {
    return guarded([&] {
        upsample(ctx, output, required_view(features, "features"), masks, kernel_size, group_size, scale_factor);
    });
}

diopiError_t diopiCarafeNaiveBackwardMmcv(Context ctx, Tensor bottom_grad, Tensor mask_grad, ConstTensor top_grad,
                                          ConstTensor features, ConstTensor masks, int64_t kernel_size,
                                          int64_t group_size, int64_t scale_factor) {
    return guarded([&] {
        upsample_backward(ctx, bottom_grad, mask_grad, top_grad, required_view(features, "features"), masks,
                          kernel_size, group_size, scale_factor);
    });
}

}  // namespace impl::portable
