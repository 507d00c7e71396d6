// Convolutions of planes and volumes in NCHW memory on a host: the planes are spread out, and no matrix of windows is made.
#pragma once

#include <diopi/diopirt.h>

#include "convolution_shape.h"
#include "core/handles.h"

namespace diopi::kernels {

// Whether the functions below compute it, and in less time than matrix products would; direct_backward_weight() takes
// planes alone.
bool has_direct_convolution(const ConvolutionShape& shape);

// All tensors are dense in NCHW memory, float or double. output = input * weight, or += where `adds`; the same for
// grad_input, which is the output of a transposed convolution.
template <class T>
void direct_convolution(Context ctx, const ConvolutionShape& shape, T* output, const T* input, const T* weight,
                        bool adds);
template <class T>
void direct_backward_input(Context ctx, const ConvolutionShape& shape, T* grad_input, const T* grad_output,
                           const T* weight, bool adds);
template <class T>
void direct_backward_weight(Context ctx, const ConvolutionShape& shape, T* grad_weight, const T* grad_output,
                            const T* input);

}  // namespace diopi::kernels
