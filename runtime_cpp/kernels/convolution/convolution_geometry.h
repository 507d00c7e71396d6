// Convolutions of planes and volumes seen alike: the arguments of the contract, checked, and tensors in dense memory.
#pragma once

#include <diopi/diopirt.h>

#include "convolution_shape.h"
#include "copy/copy.h"
#include "core/tensor.h"
#include "core/view.h"
#include "linear_algebra/matrix.h"

namespace diopi::kernels {

// The arguments of the contract; `output_padding` is null where the convolution is not transposed.
struct Geometry {
    int rank;  // of the images: planes or volumes
    Sizes stride, padding, dilation;
    int64_t groups;
    const Sizes* output_padding;
};

// A batch of volumes: an image alone becomes a batch of one, a plane a volume of depth one.
TensorView volumes_of(const TensorView& tensor, int rank);

// From volumes. Fails where the sizes do not fit. A transposed convolution gives its output for `input`, and its input
// for `output`.
ConvolutionShape shape_of(const TensorView& input, const TensorView& weight, const TensorView& output,
                          const Geometry& g);

// How the volumes of a convolution lie in dense memory: NDHWC or NCDHW.
enum class Memory { kChannelsLast, kChannelsFirst };

// NCDHW sizes seen in the order of NDHWC memory.
TensorView channels_last(const TensorView& tensor);

inline TensorView seen_in(const TensorView& tensor, Memory memory) {
    return memory == Memory::kChannelsLast ? channels_last(tensor) : tensor;
}

// What seen_in() was given.
inline TensorView given_in(const TensorView& seen, Memory memory) {
    return memory == Memory::kChannelsLast ? transposed(transposed(transposed(seen, 3, 4), 2, 3), 1, 2) : seen;
}

// A value per channel, to broadcast over NCDHW volumes.
TensorView per_volume(const TensorView& channels);

// A result to compute into: the tensor itself where it lies in that memory, where a pack may begin if the chip has teams,
// and needs no conversion.
TensorView target_for(Context ctx, const TensorView& tensor, diopiDtype_t dtype, Memory memory = Memory::kChannelsLast);

// In that memory and of `dtype`; the tensor itself where it is that already.
inline TensorView dense_pixels(Context ctx, const TensorView& tensor, diopiDtype_t dtype,
                               Memory memory = Memory::kChannelsLast) {
    const TensorView target = target_for(ctx, tensor, dtype, memory);
    copy_elements(ctx, target, seen_in(tensor, memory));
    return target;
}

// Calls f with the type that convolutions of `dtype` are computed in.
template <class F>
void dispatch_product(diopiDtype_t dtype, F&& f) {
    if (!is_float_dtype(dtype)) fail_dtype(dtype);
    dispatch<Types<float, double>>(product_dtype(dtype), f);
}

// Computes a result of any layout: f(target) adds to the bias, or overwrites where there is none; an empty sum is left
// out.
template <class F>
void compute_dense(Context ctx, const TensorView& result, diopiDtype_t dtype, const TensorView& bias, bool empty_sum,
                   F&& f, Memory memory = Memory::kChannelsLast) {
    const TensorView target = target_for(ctx, result, dtype, memory);
    if (bias) copy_elements(ctx, target, memory == Memory::kChannelsLast ? bias : per_volume(bias));
    if (!bias && empty_sum) fill_zero(ctx, target);
    if (result.numel > 0 && !empty_sum) f(target);
    copy_elements(ctx, seen_in(result, memory), target);
}

}  // namespace diopi::kernels
