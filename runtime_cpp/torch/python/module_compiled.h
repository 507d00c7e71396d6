// Compiled programs in Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace dipu {

void bind_compiled(pybind11::module_& m);

}  // namespace dipu
