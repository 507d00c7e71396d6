// The part of the Python extension for torch.distributed.
#pragma once

#include <pybind11/pybind11.h>

namespace dipu::distributed {

void bind(pybind11::module_& m);

}  // namespace dipu::distributed
