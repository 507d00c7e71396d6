// Byte copies through the device table: between host and device, within a device, and between devices.
#include "transfer.h"

#include <ATen/EmptyTensor.h>

#include "allocator.h"
#include "profiler/call_span.h"
#include "device/device.h"
#include "device/device_api.h"
#include "host_allocator.h"
#include "captures.h"
#include "memory_check.h"
#include "device/stream.h"
#include "wrapper/context.h"

namespace dipu {
namespace {

// Bytes from the first element to the last, strides included. Strides are never negative in torch.
std::size_t span_bytes(const at::Tensor& tensor) {
    if (tensor.numel() == 0) {
        return 0;
    }
    return at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
}

void check_copy(const at::Tensor& tensor, std::size_t bytes) {
    if (checking_memory()) [[unlikely]] {
        check_memory(tensor.const_data_ptr(), bytes, "copy");
    }
}

void pull(const at::Tensor& device, void* host, std::size_t bytes, bool wait) {
    if (bytes == 0) {
        return;
    }
    check_copy(device, bytes);
    const c10::DeviceIndex index = device.device().index();
    if (wait) {
        check_not_recorded(index, kWaiting);
    }
    const DeviceScope scope(index);
    {
        const CallSpan span("copy, device to host", index, bytes);
        check_device(device_api().memcpy_d2h_async(current_stream_handle(index), host, device.const_data_ptr(), bytes),
                     "copy from the device to the host");
    }
    if (wait) {
        synchronize_stream(current_stream(index));
    } else {
        record_pinned(host, current_stream(index));
    }
}

void push(const void* host, const at::Tensor& device, std::size_t bytes, bool wait) {
    if (bytes == 0) {
        return;
    }
    check_copy(device, bytes);
    const c10::DeviceIndex index = device.device().index();
    if (wait) {
        check_not_recorded(index, kWaiting);
    }
    const DeviceScope scope(index);
    {
        const CallSpan span("copy, host to device", index, bytes);
        check_device(
            device_api().memcpy_h2d_async(current_stream_handle(index), device.mutable_data_ptr(), host, bytes),
            "copy from the host to the device");
    }
    if (wait) {
        synchronize_stream(current_stream(index));
    } else {
        record_pinned(host, current_stream(index));
    }
}

// Between two devices: the vendor's own copy, or a way through the host.
void copy_between(const at::Tensor& source, const at::Tensor& destination, std::size_t bytes) {
    const c10::DeviceIndex from = source.device().index();
    const c10::DeviceIndex to = destination.device().index();
    // The destination's stream is idle of writes to that memory, and the source's has finished it.
    synchronize_stream(current_stream(to));
    if (device_api().memcpy_peer_async == nullptr) {
        const at::Tensor staging(at::detail::empty_cpu({static_cast<int64_t>(bytes)}, c10::kByte));
        pull(source, staging.mutable_data_ptr(), bytes, true);
        push(staging.const_data_ptr(), destination, bytes, true);
        return;
    }
    const DeviceScope scope(from);
    {
        const CallSpan span("copy, device to device", from, bytes);
        check_device(device_api().memcpy_peer_async(current_stream_handle(from), destination.mutable_data_ptr(), to,
                                                    source.const_data_ptr(), from, bytes),
                     "copy between devices");
    }
    synchronize_stream(current_stream(from));
}

}  // namespace

void host_to_device(const at::Tensor& host, const at::Tensor& device, bool wait) {
    push(host.const_data_ptr(), device, span_bytes(host), wait);
}

void device_to_host(const at::Tensor& device, const at::Tensor& host, bool wait) {
    pull(device, host.mutable_data_ptr(), span_bytes(device), wait);
}

void device_to_device(const at::Tensor& source, const at::Tensor& destination) {
    const std::size_t bytes = span_bytes(source);
    if (bytes == 0) {
        return;
    }
    check_copy(source, bytes);
    check_copy(destination, bytes);
    if (source.device() != destination.device()) {
        copy_between(source, destination, bytes);
        return;
    }
    const c10::DeviceIndex index = source.device().index();
    const DeviceScope scope(index);
    const CallSpan span("copy, within the device", index, bytes);
    check_device(device_api().memcpy_d2d_async(current_stream_handle(index), destination.mutable_data_ptr(),
                                               source.const_data_ptr(), bytes),
                 "copy within the device");
}

at::Tensor host_image(const at::Tensor& device) {
    at::Tensor image(at::detail::empty_strided_cpu(device.sizes(), device.strides(), device.scalar_type()));
    pull(device, image.mutable_data_ptr(), span_bytes(device), true);
    image._set_conj(device.is_conj());
    image._set_neg(device.is_neg());
    return image;
}

void write_image(const at::Tensor& image, const at::Tensor& device) {
    push(image.const_data_ptr(), device, span_bytes(device), true);
}

}  // namespace dipu
