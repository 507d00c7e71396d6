// Gives Python the backend `dicl`.
#include "bind.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "create.h"

namespace py = pybind11;

namespace dipu::distributed {

void bind(py::module_& m) {
    m.def("create_distributed_backend", &create_backend, py::arg("host"), py::arg("timeout"),
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace dipu::distributed
