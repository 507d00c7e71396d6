// The two functions of the vendor that every conversion is made of; the generator defines them for each vendor.
#pragma once

#include <diopi/diopirt.h>

namespace diopi::adaptor::primitives {

// Writes `input` to `out` as another dtype: the vendor's diopiCastDtype, called without conversions of its own.
diopiError_t cast(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input);

// Writes `source` to `target`, which lies differently in memory: the vendor's diopiCopyInp, likewise.
diopiError_t copy(diopiContextHandle_t ctx, diopiConstTensorHandle_t source, diopiTensorHandle_t target);

}  // namespace diopi::adaptor::primitives
