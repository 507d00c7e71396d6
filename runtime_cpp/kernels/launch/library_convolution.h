// Convolutions by a vendor's library, for launchers that have one: they define DIOPI_LAUNCHER_HAS_CONVOLUTIONS and
// these functions.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "library_product.h"

namespace diopi::launch {

enum class ConvolutionStep { kForward, kBackwardInput, kBackwardWeight };

// Sizes are NCDHW, a plane has a depth of one; the tensors are dense in NCDHW memory, or all with the channels
// innermost.
struct LibraryConvolution {
    ConvolutionStep step;
    diopiDtype_t dtype;
    bool holds_halves;  // float32 operands with no more digits than halves have: factors may be cut to as many
    bool channels_last;
    int rank;  // of the images: 2 or 3
    int64_t input[5], filters[5], output[5];
    int64_t padding[3], stride[3], dilation[3];
    int64_t groups;
    bool biased;  // a value per filter is added to the sums of the forward step before they are rounded
};

// False where the library has no kernel for it; the portable ones serve then.
bool has_convolution(const LibraryConvolution& problem);

// result = the step's product of its operands: input and filters, output and filters, or output and input. `bias`, of the
// problem's dtype, is null where the problem is not biased.
diopiError_t convolve(diopiStreamHandle_t stream, const LibraryConvolution& problem, const void* first,
                      const void* second, const void* bias, void* result, const Workspace& workspace);

}  // namespace diopi::launch
