// Gives Python the backend `dicl`.
#include "bind.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "create.h"
#include "work.h"

namespace py = pybind11;

namespace dipu::distributed {

namespace {

void wait_in_python(c10::ivalue::Future& future) {
    if (PyGILState_Check() != 0) {
        const py::gil_scoped_release others;
        future.wait();
    }
}

}  // namespace

void bind(py::module_& m) {
    set_python_wait(&wait_in_python);
    m.def("create_distributed_backend", &create_backend, py::arg("host"), py::arg("timeout"),
          py::call_guard<py::gil_scoped_release>());
}

}  // namespace dipu::distributed
