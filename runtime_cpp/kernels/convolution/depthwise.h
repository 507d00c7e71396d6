// Depthwise convolution: every filter sees one channel, so channels are worked on side by side and no matrix is made.
#pragma once

#include <diopi/diopirt.h>

#include "convolution_shape.h"
#include "core/handles.h"

namespace diopi::kernels {

// All tensors are dense in NDHWC memory and of `dtype`, float32 or float64; the shape is depthwise().

// output = input * weight, or += where the output holds a bias already; the same for grad_input, which is the output of
// a transposed convolution.
void depthwise(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* output, const void* input,
               const void* weight, bool adds);
void depthwise_backward_input(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* grad_input,
                              const void* grad_output, const void* weight, bool adds);
void depthwise_backward_weight(Context ctx, const ConvolutionShape& shape, diopiDtype_t dtype, void* grad_weight,
                               const void* grad_output, const void* input);

}  // namespace diopi::kernels
