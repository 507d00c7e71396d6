// Convolutions of planes and volumes seen alike: the arguments of the contract, checked, and tensors in NDHWC memory.
#ifndef DIOPI_KERNELS_CORE_CONVOLUTION_GEOMETRY_H_
#define DIOPI_KERNELS_CORE_CONVOLUTION_GEOMETRY_H_

#include <diopi/diopirt.h>

#include "convolution_shape.h"
#include "copy.h"
#include "matrix.h"
#include "tensor.h"
#include "view.h"

namespace diopi::kernels {

// The arguments of the contract; `output_padding` is null where the convolution is not transposed.
struct Geometry {
    int rank;  // of the images: planes or volumes
    diopiSize_t stride, padding, dilation;
    int64_t groups;
    const diopiSize_t* output_padding;
};

// A batch of volumes: an image alone becomes a batch of one, a plane a volume of depth one.
TensorView volumes_of(const TensorView& tensor, int rank);

// From volumes. Fails where the sizes do not fit. A transposed convolution gives its output for `input`, and its input
// for `output`.
ConvolutionShape shape_of(const TensorView& input, const TensorView& weight, const TensorView& output,
                          const Geometry& g);

// NCDHW sizes seen in the order of NDHWC memory.
TensorView channels_last(const TensorView& tensor);

// A result to compute into: the tensor itself where it lies in NDHWC memory and needs no conversion.
TensorView target_for(Context ctx, const TensorView& tensor, diopiDtype_t dtype);

// In NDHWC memory and of `dtype`; the tensor itself where it is that already.
inline TensorView dense_pixels(Context ctx, const TensorView& tensor, diopiDtype_t dtype) {
    return contiguous_as(ctx, channels_last(tensor), dtype);
}

// Calls f with the type that convolutions of `dtype` are computed in.
template <class F>
void dispatch_product(diopiDtype_t dtype, F&& f) {
    if (!is_float_dtype(dtype)) fail_dtype(dtype);
    dispatch<Types<float, double>>(product_dtype(dtype), f);
}

// Computes a result of any layout: f(target) adds to the bias, or overwrites where there is none; an empty sum is left
// out.
template <class T, class F>
void compute_dense(Context ctx, const TensorView& result, const TensorView& bias, bool empty_sum, F&& f) {
    const TensorView target = target_for(ctx, result, dtype_of<T>);
    if (bias) copy_elements(ctx, target, bias);
    if (!bias && empty_sum) fill_zero(ctx, target);
    if (result.numel > 0 && !empty_sum) f(target);
    copy_elements(ctx, channels_last(result), target);
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_CONVOLUTION_GEOMETRY_H_
