// Copies: within a tensor's dtype, into another, into another order of memory.
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiCopyInp(diopiContextHandle_t, diopiConstTensorHandle_t src, diopiTensorHandle_t dest) {
    return guarded([&] { tensor(dest).copy_(tensor(src)); });
}

diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return guarded([&] { write(out, tensor(input)); });
}

diopiError_t diopiContiguous(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                             diopiMemoryFormat_t memoryFormat) {
    return guarded([&] { allocate(ctx, out, tensor(input).contiguous(format(memoryFormat))); });
}

}  // namespace impl::torch
