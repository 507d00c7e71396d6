// The context of one call of a vendor function: its device, its stream, and the tensors that the callee asks for.
//
// The backend and C++ clients make it alike. A callee reaches it only through diopiGetStream, diopiRequireTensor and
// diopiRequireBuffer.
#pragma once

#include <ATen/core/Tensor.h>
#include <diopi/diopirt.h>

#include <exception>
#include <forward_list>

struct diopiContext {
    // On the current device; what clients write.
    explicit diopiContext(diopiStreamHandle_t on);
    diopiContext(diopiStreamHandle_t on, c10::DeviceIndex of, bool keeps = false)
        : stream(on),
          device(of),
          keeps_returned(keeps) {}

    diopiStreamHandle_t stream;
    c10::DeviceIndex device;
    // Stable addresses (handles point to them), and no allocation while it is empty.
    std::forward_list<at::Tensor> tensors;
    std::exception_ptr failure;  // why the callee did not get what it last asked for
    bool keeps_returned;         // what is recorded runs again, over the same memory
};
