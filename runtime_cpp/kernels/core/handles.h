// The contract's handles, by the names that kernels call them.
#ifndef DIOPI_KERNELS_CORE_HANDLES_H_
#define DIOPI_KERNELS_CORE_HANDLES_H_

#include <diopi/diopirt.h>

namespace diopi::kernels {

using Context = diopiContextHandle_t;
using Tensor = diopiTensorHandle_t;
using ConstTensor = diopiConstTensorHandle_t;
using Generator = diopiGeneratorHandle_t;

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_HANDLES_H_
