// The functions of the compatibility layer, over those of the backend.
#include <c10/util/Exception.h>
#include <diopi/functions.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "csrc_dipu/diopirt/diopirt_impl.h"
#include "csrc_dipu/utils/helpfunc.hpp"
#include "wrapper/context.h"
#include "wrapper/handles.h"

namespace dipu {

DIPUStream getCurrentDIPUStream(c10::DeviceIndex device) {
    return DIPUStream(current_stream_handle(checked_device(device)));
}

const char* VendorTypeToStr(VendorDeviceType) {
    static const std::string name = [] {
        std::string text = ::diopiGetVendorName == nullptr ? "unknown" : ::diopiGetVendorName();
        std::transform(text.begin(), text.end(), text.begin(),
                       [](unsigned char letter) { return std::toupper(letter); });
        return text;
    }();
    return name.c_str();
}

namespace diopi_helper {

diopiTensorHandle_t toDiopiTensorHandle(at::Tensor& tensor) { return out_handle(tensor); }

diopiConstTensorHandle_t toDiopiTensorHandle(const at::Tensor& tensor) { return handle(tensor); }

diopiConstTensorHandle_t toDiopiTensorHandle(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() ? handle(*tensor) : nullptr;
}

diopiScalar_t toDiopiScalar(const at::Scalar& scalar) {
    const ScalarArg argument(scalar);
    TORCH_CHECK(argument, "a complex number has no form in the contract");
    return *static_cast<const diopiScalar_t*>(argument);
}

}  // namespace diopi_helper
}  // namespace dipu

diopiContext::diopiContext(diopiStreamHandle_t on) : diopiContext(on, dipu::current_device()) {}
