// Calls that Python makes of functions which only one vendor has.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace dipu {

void bind_calls(pybind11::module_& m);

}  // namespace dipu
