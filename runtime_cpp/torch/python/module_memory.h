// The part of torch_dipu._C about memory.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace dipu {

void bind_memory(pybind11::module_& m);

}  // namespace dipu
