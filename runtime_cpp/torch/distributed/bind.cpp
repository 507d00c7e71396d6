// Gives Python the backend `dicl`.
#include "bind.h"

#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "collectives/report.h"
#include "create.h"
#include "failure_signal.h"
#include "flight_recorder.h"
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
    py::module_::import("torch.distributed");  // which makes the classes that these are of
    py::class_<DiclOptions, c10d::Backend::Options, c10::intrusive_ptr<DiclOptions>>(m, "DiclOptions")
        .def("__deepcopy__",
             [](const DiclOptions& options, const py::object&) { return c10::make_intrusive<DiclOptions>(options); });
    // Its threads may need Python to give a tensor up, and its destructor waits for them.
    py::class_<DiclBackend, c10d::Backend, c10::intrusive_ptr<DiclBackend>>(m, "DiclBackend",
                                                                            py::release_gil_before_calling_cpp_dtor())
        .def_property_readonly("options",
                               [](DiclBackend& backend) {
                                   return c10::static_intrusive_pointer_cast<DiclOptions>(backend.getBackendOptions());
                               })
        // torch asks the ranks that are in no part of a new group: these meet by its store.
        .def("perform_nocolor_split", [](DiclBackend&, const py::object&) {});
    set_python_wait(&wait_in_python);
    m.def("create_distributed_backend", &create_backend, py::arg("host"), py::arg("store"), py::arg("timeout"),
          py::call_guard<py::gil_scoped_release>());
    m.def("end_flight_records", &FailureSignal::end, py::call_guard<py::gil_scoped_release>());
    m.def("collective_report", [] {
        py::list rows;
        for (const collectives::CollectiveCount& row : collectives::collective_report()) {
            rows.append(py::make_tuple(row.collective, row.dtype, row.cause, row.calls));
        }
        return rows;
    });
    m.def(
        "flight_record",
        [](bool stacks, bool only_active) {
            std::string record;
            {
                const py::gil_scoped_release others;
                record = flight_record(stacks, only_active);
            }
            return py::bytes(record);
        },
        py::arg("stacks"), py::arg("only_active"));
    m.def("reset_collective_report", &collectives::reset_collective_report);
}

}  // namespace dipu::distributed
