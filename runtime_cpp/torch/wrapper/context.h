// The context of one call of a vendor function, made on the device of its tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "../../client/dist/include/csrc_dipu/diopirt/context.h"
#include "device/device.h"
#include "export.h"

namespace dipu {

// Fills the calling thread's entry for its current stream on `device` on the first use.
DIPU_API diopiStreamHandle_t start_current_stream(c10::DeviceIndex device);

inline diopiStreamHandle_t current_stream_handle(const ThreadDevices& thread, c10::DeviceIndex device) {
    const CurrentStream& stream = thread.streams[device];
    return stream.ready ? stream.native : start_current_stream(device);
}

inline diopiStreamHandle_t current_stream_handle(c10::DeviceIndex device) {
    return current_stream_handle(thread_devices, device);
}

// Tensors that the callee required live until the context goes; their memory is reused in the order of the stream.
class Context {
public:
    explicit Context(const at::Tensor& on) : Context(on.device().index()) {}
    explicit Context(c10::DeviceIndex device)
        : scope_(device),
          context_(current_stream_handle(scope_.thread(), device), device) {}

    operator diopiContextHandle_t() { return &context_; }

private:
    DeviceScope scope_;
    diopiContext context_;
};

}  // namespace dipu
