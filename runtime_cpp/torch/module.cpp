// The Python extension torch_dipu._C: a thin face of the library, without logic of its own.
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include "allocator.h"
#include "device.h"
#include "device_properties.h"
#include "fallback.h"
#include "generator.h"
#include "initialize.h"
#include "interposer.h"
#include "registry.h"
#include "stream.h"
#include "vendor_library.h"

namespace py = pybind11;

namespace {

void bind_devices(py::module_& m) {
    m.def("device_count", [] { return static_cast<int>(dipu::device_count()); });
    m.def("current_device", [] { return static_cast<int>(dipu::current_device()); });
    m.def("set_device", [](int device) { dipu::set_device(static_cast<c10::DeviceIndex>(device)); });
    m.def("synchronize_device", [](int device) { dipu::synchronize_device(static_cast<c10::DeviceIndex>(device)); },
          py::call_guard<py::gil_scoped_release>());
    m.def("device_properties", [](int device) {
        const diopiDeviceProperties_t properties = dipu::device_properties(static_cast<c10::DeviceIndex>(device));
        return py::make_tuple(std::string(properties.name), properties.total_memory, properties.multi_processor_count,
                              properties.major, properties.minor);
    });
    m.def("memory_info", [](int device) {
        return dipu::device_allocator().getMemoryInfo(static_cast<c10::DeviceIndex>(device));
    });
    m.def("memory_snapshot", [](int device) {
        py::list rows;
        for (const dipu::BlockState& row : dipu::memory_snapshot(static_cast<c10::DeviceIndex>(device))) {
            rows.append(py::make_tuple(row.address, row.bytes, row.requested, row.stream, row.state));
        }
        return rows;
    });
    m.def("vendor_library_path", &dipu::vendor_library_path);
}

void bind_random(py::module_& m) {
    m.def("default_generator", [](int device) { return dipu::default_generator(static_cast<c10::DeviceIndex>(device)); });
}

void bind_fallback(py::module_& m) {
    m.def("fallback_report", [] {
        py::list rows;
        for (const dipu::FallbackCount& row : dipu::fallback_report()) {
            rows.append(py::make_tuple(row.operator_name, row.cause, row.count));
        }
        return rows;
    });
    m.def("reset_fallbacks", &dipu::reset_fallbacks);
    m.def("set_strict_fallback", &dipu::set_strict_fallback);
    m.def("strict_fallback", &dipu::strict_fallback);
    m.def("set_allowed_fallbacks", &dipu::set_allowed_fallbacks);
    m.def("allowed_fallbacks", &dipu::allowed_fallbacks);
}

void bind_operators(py::module_& m) {
    m.def("native_operators", &dipu::native_operators);
    m.def("unavailable_operators", [] {
        py::list rows;
        for (const dipu::Unavailable& row : dipu::unavailable_operators()) {
            rows.append(py::make_tuple(row.operator_name, row.function));
        }
        return rows;
    });
    m.def("set_control", [](const std::string& pattern, int bit) {
        return dipu::set_control(pattern, static_cast<dipu::ControlBit>(bit));
    });
    m.def("set_dump_level", &dipu::set_dump_level);
    m.def("comparison_report", [] {
        py::list rows;
        for (const dipu::Comparison& row : dipu::comparison_report()) {
            rows.append(py::make_tuple(row.operator_name, row.runs, row.differences, row.largest));
        }
        return rows;
    });
    m.def("reset_comparisons", &dipu::reset_comparisons);
    m.def("set_comparison_raises", &dipu::set_comparison_raises);
}

}  // namespace

PYBIND11_MODULE(_C, m) {
    m.def("initialize", &dipu::initialize, py::call_guard<py::gil_scoped_release>());
    // In a forked child the first use of the device asks torch.dipu._lazy_init again, which refuses.
    m.def("watch_forks", [] { torch::utils::register_fork_handler_for_device_init(at::kPrivateUse1); });
    bind_devices(m);
    bind_random(m);
    bind_fallback(m);
    bind_operators(m);
}
