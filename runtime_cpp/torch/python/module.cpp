// The Python extension torch_dipu._C: a thin face of the library, without logic of its own.
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <sstream>

#include "daemon_threads.h"
#include "memory/allocator.h"
#include "interposer/comparison.h"
#include "device/device.h"
#include "device/device_properties.h"
#include "distributed/bind.h"
#include "interposer/dump.h"
#include "interposer/fallback.h"
#include "generated.h"
#include "device/graph.h"
#include "device/generator.h"
#include "initialize.h"
#include "interposer/interposer.h"
#include "module_calls.h"
#include "module_compiled.h"
#include "memory/captures.h"
#include "module_memory.h"
#include "registry.h"
#include "device/stream.h"
#include "device/use.h"
#include "device/vendor_library.h"

namespace py = pybind11;

namespace {

void bind_devices(py::module_& m) {
    m.def("use_device", [] {
        // In a forked child the first use of the device asks torch.dipu._lazy_init again, which refuses.
        torch::utils::register_fork_handler_for_device_init(at::kPrivateUse1);
        dipu::use_device();
    });
    m.def("device_in_use", &dipu::device_in_use);
    m.def("in_bad_fork", &dipu::in_bad_fork);
    m.def("device_count", [] { return static_cast<int>(dipu::device_count()); });
    m.def("current_device", [] { return static_cast<int>(dipu::current_device()); });
    m.def("set_device", [](int device) { dipu::set_device(static_cast<c10::DeviceIndex>(device)); });
    m.def(
        "synchronize_device", [](int device) { dipu::synchronize_device(static_cast<c10::DeviceIndex>(device)); },
        py::call_guard<py::gil_scoped_release>());
    m.def("device_properties", [](int device) {
        const diopiDeviceProperties_t properties = dipu::device_properties(static_cast<c10::DeviceIndex>(device));
        return py::make_tuple(std::string(properties.name), properties.total_memory, properties.multi_processor_count,
                              properties.major, properties.minor);
    });
    m.def("external_stream", [](int device, std::uintptr_t native) {
        return dipu::external_stream(static_cast<c10::DeviceIndex>(device),
                                     reinterpret_cast<diopiStreamHandle_t>(native))
            .id();
    });
    m.def("stream_priority", &dipu::stream_priority);
    m.def("is_captured", [](int device, int64_t stream) {
        return dipu::pool_for(static_cast<c10::DeviceIndex>(device), stream) != dipu::kNoPool;
    });
    m.def("register_graphs", &dipu::register_graphs);
    m.def("vendor_library_path", &dipu::vendor_library_path);
}

void bind_random(py::module_& m) {
    m.def("seed_all", &dipu::seed_all);
    m.def("default_generator",
          [](int device) { return dipu::default_generator(static_cast<c10::DeviceIndex>(device)); });
}

void bind_fallback(py::module_& m) {
    m.def("fallback_report", [] {
        py::list rows;
        for (const dipu::FallbackCount& row : dipu::fallback_report()) {
            rows.append(py::make_tuple(row.operator_name, row.cause, row.count, row.bytes, row.seconds));
        }
        return rows;
    });
    m.def("reset_fallbacks", &dipu::reset_fallbacks);
    m.def("set_fallback_policy", [](bool strict, const std::string& allowed, const std::string& denied) {
        dipu::set_fallback_policy({strict, allowed, denied});
    });
    m.def("fallback_policy", [] {
        const dipu::FallbackPolicy policy = dipu::fallback_policy();
        return py::make_tuple(policy.strict, policy.allowed, policy.denied);
    });
}

// An argument of an operator as Python has it; what has no such form, by its text.
py::object python_value(const c10::IValue& value) {
    if (value.isNone()) {
        return py::none();
    }
    if (value.isTensor()) {
        return value.toTensor().defined() ? py::cast(value.toTensor()) : py::object(py::none());
    }
    if (value.isBool()) {
        return py::cast(value.toBool());
    }
    if (value.isInt()) {
        return py::cast(value.toInt());
    }
    if (value.isDouble()) {
        return py::cast(value.toDouble());
    }
    if (value.isString()) {
        return py::cast(value.toStringRef());
    }
    if (value.isList()) {
        py::list list;
        for (const c10::IValue& item : value.toListRef()) {
            list.append(python_value(item));
        }
        return list;
    }
    std::ostringstream text;
    text << value;
    return py::cast(text.str());
}

py::dict python_mismatch(const dipu::Mismatch& m) {
    py::dict row;
    row["operator"] = m.operator_name;
    row["value"] = m.value;
    row["what"] = m.what;
    row["index"] = m.index;
    row["device"] = m.device;
    row["cpu"] = m.cpu;
    row["error"] = m.error;
    row["tolerance"] = m.tolerance;
    row["ulp"] = m.ulp;
    row["wrong"] = m.wrong;
    row["elements"] = m.elements;
    row["text"] = dipu::text_of(m);
    return row;
}

void bind_comparison(py::module_& m) {
    m.def("comparison_report", [] {
        py::list rows;
        for (const dipu::Comparison& row : dipu::comparison_report()) {
            rows.append(py::make_tuple(row.operator_name, row.runs, row.differences, row.skipped,
                                       row.differences == 0 ? py::object(py::none()) : python_mismatch(row.worst)));
        }
        return rows;
    });
    m.def("reset_comparisons", &dipu::reset_comparisons);
    m.def("set_on_mismatch", [](const std::string& action) {
        TORCH_CHECK_VALUE(action == "log" || action == "raise" || action == "dump",
                          "on_mismatch is 'log', 'raise' or 'dump', not '", action, "'");
        dipu::set_on_mismatch(action == "raise"  ? dipu::OnMismatch::kRaise
                              : action == "dump" ? dipu::OnMismatch::kDump
                                                 : dipu::OnMismatch::kLog);
    });
    // `handler(operator, arguments by name, mismatch)`; it is called from whichever thread ran the operator.
    m.def("set_mismatch_handler", [](py::function handler) {
        const auto kept = std::make_shared<py::function>(std::move(handler));
        dipu::set_mismatch_handler(
            [kept](const c10::OperatorHandle& op, const torch::jit::Stack& arguments, const dipu::Mismatch& mismatch) {
                const py::gil_scoped_acquire lock;
                py::dict values;
                for (std::size_t index = 0; index < arguments.size(); ++index) {
                    values[py::str(op.schema().arguments()[index].name())] = python_value(arguments[index]);
                }
                (*kept)(mismatch.operator_name, values, python_mismatch(mismatch));
            });
    });
}

void bind_operators(py::module_& m) {
    m.def("native_operators", &dipu::native_operators);
    m.def("derived_operators", &dipu::derived_operators);
    m.def("unavailable_operators", [] {
        py::list rows;
        for (const dipu::Unavailable& row : dipu::unavailable_operators()) {
            rows.append(py::make_tuple(row.operator_name, row.function));
        }
        return rows;
    });
    m.def("drifted_operators", [] {
        py::list rows;
        for (const dipu::DriftedOperator& row : dipu::drifted_operators()) {
            rows.append(py::make_tuple(row.name, row.reason));
        }
        return rows;
    });
    m.def("set_control", [](const std::string& pattern, int bit) {
        return dipu::set_control(pattern, static_cast<dipu::ControlBit>(bit));
    });
    m.def("set_dump_style",
          [](int level, bool json, const std::string& path) { dipu::set_dump_style({level, json, path}); });
}

}  // namespace

PYBIND11_MODULE(_C, m) {
    m.def("initialize", &dipu::initialize, py::arg("vendor_library") = "", py::call_guard<py::gil_scoped_release>());
    m.def("let_daemon_threads_sleep", &dipu::let_daemon_threads_sleep);
    bind_devices(m);
    bind_random(m);
    dipu::bind_memory(m);
    bind_fallback(m);
    bind_comparison(m);
    bind_operators(m);
    dipu::bind_calls(m);
    dipu::bind_compiled(m);
    dipu::distributed::bind(m);
}
