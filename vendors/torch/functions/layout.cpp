// The vendor's own memory formats are those of PyTorch, by their numbers; nothing is kept beside a tensor.
#include <c10/core/MemoryFormat.h>
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiNativeMemoryFormatCast(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiTensorHandle_t in,
                                         int64_t format) {
    return guarded([&] {
        if (format < 0 || format >= static_cast<int64_t>(at::MemoryFormat::NumOptions)) refuse("such a memory format");
        allocate(ctx, out, tensor(in).clone(static_cast<at::MemoryFormat>(format)));
    });
}

diopiError_t diopiGetNativeMemoryFormat(diopiContextHandle_t, diopiConstTensorHandle_t input, int64_t* format) {
    return guarded([&] { *format = static_cast<int64_t>(tensor(input).suggest_memory_format()); });
}

diopiError_t diopiTensorDestructionHook(diopiContextHandle_t, void*) { return diopiSuccess; }

}  // namespace impl::torch
