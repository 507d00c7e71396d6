// What Python needs to call a function of the vendor's library: its address, a context, and handles of tensors.
#include "module_calls.h"

#include <string>

#include "device/device_api.h"
#include "device/vendor_library.h"
#include "wrapper/context.h"
#include "wrapper/handles.h"
#include "wrapper/status.h"

namespace py = pybind11;

namespace dipu {
namespace {

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// The address of the tensor in here is the handle, for as long as this lives.
struct TensorHandle {
    at::Tensor tensor;
};

void require_success(Context& context, int status, const std::string& function) {
    const auto found = static_cast<diopiError_t>(status);
    raise_failed_request(context, found, function.c_str());
    TORCH_CHECK(found == diopiSuccess, function, " failed with status ", status, ": ", last_operator_error());
}

}  // namespace

void bind_calls(py::module_& m) {
    py::class_<TensorHandle>(m, "TensorHandle")
        .def(py::init([](at::Tensor tensor) { return TensorHandle{std::move(tensor)}; }))
        .def_property_readonly("address", [](const TensorHandle& held) { return address(handle(held.tensor)); });
    py::class_<ScalarArg>(m, "ScalarHandle")
        .def(py::init([](const c10::Scalar& number) {
            ScalarArg made(number);
            TORCH_CHECK(static_cast<bool>(made), "a complex number has no form in C");
            return made;
        }))
        .def_property_readonly(
            "address", [](const ScalarArg& number) { return address(static_cast<const diopiScalar_t*>(number)); });
    py::class_<Context>(m, "Context")
        .def(py::init([](int device) { return new Context(static_cast<c10::DeviceIndex>(device)); }))
        .def_property_readonly("address",
                               [](Context& context) { return address(static_cast<diopiContextHandle_t>(context)); })
        .def("require_success", &require_success);
    m.def("vendor_symbol", [](const std::string& name) { return address(vendor_symbol(name.c_str())); });
}

}  // namespace dipu
