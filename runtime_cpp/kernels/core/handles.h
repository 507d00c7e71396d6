// The contract's handles and lists, by the names that kernels call them.
#pragma once

#include <diopi/diopirt.h>

namespace diopi::kernels {

using Context = diopiContextHandle_t;
using Tensor = diopiTensorHandle_t;
using ConstTensor = diopiConstTensorHandle_t;
using Generator = diopiGeneratorHandle_t;
using Sizes = diopiSize_t;

}  // namespace diopi::kernels
