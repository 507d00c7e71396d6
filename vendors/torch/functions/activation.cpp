// Gelu: ATen's float32 kernel makes infinity times erf of it a NaN.
#include <ATen/ops/gelu.h>
#include <ATen/ops/where.h>
#include <diopi/functions.h>

#include <limits>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

diopiError_t diopiGelu(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                       const char* approximate) {
    return guarded([&] {
        const at::Tensor x = tensor(input);
        write(out, at::where(x.eq(std::numeric_limits<double>::infinity()), x, at::gelu(x, text(approximate))));
    });
}

}  // namespace impl::torch
