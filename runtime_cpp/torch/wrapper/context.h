// The context of one call of a vendor function: its device, its stream, and the tensors that the callee asks for.
#pragma once

#include <ATen/core/Tensor.h>

#include <exception>
#include <forward_list>

#include "device/device.h"

// Opaque in the contract; a callee reaches it only through diopiGetStream, diopiRequireTensor and diopiRequireBuffer.
struct diopiContext {
    diopiStreamHandle_t stream;
    c10::DeviceIndex device;
    // Stable addresses (handles point to them), and no allocation while it is empty.
    std::forward_list<at::Tensor> tensors;
    std::exception_ptr failure;  // why the callee did not get what it last asked for
    bool keeps_returned = false;  // what is recorded runs again, over the same memory
};

namespace dipu {

// Fills the calling thread's entry for its current stream on `device` on the first use.
diopiStreamHandle_t start_current_stream(c10::DeviceIndex device);

inline diopiStreamHandle_t current_stream_handle(const ThreadDevices& thread, c10::DeviceIndex device) {
    const CurrentStream& stream = thread.streams[device];
    return stream.ready ? stream.native : start_current_stream(device);
}

inline diopiStreamHandle_t current_stream_handle(c10::DeviceIndex device) { return current_stream_handle(thread_devices, device); }

// Tensors that the callee required live until the context goes; their memory is reused in the order of the stream.
class Context {
public:
    explicit Context(const at::Tensor& on) : Context(on.device().index()) {}
    explicit Context(c10::DeviceIndex device) : scope_(device), context_{current_stream_handle(scope_.thread(), device), device, {}, {}} {}

    operator diopiContextHandle_t() { return &context_; }

private:
    DeviceScope scope_;
    diopiContext context_;
};

}  // namespace dipu
