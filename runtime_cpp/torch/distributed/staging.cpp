// Copies the tensors of a collective between device and pinned host memory on streams of their own.
#include "staging.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/StreamGuard.h>

#include "memory/host_allocator.h"
#include "device/stream.h"
#include "memory/transfer.h"

namespace dipu::distributed {
namespace {

at::Tensor pinned_bytes(const std::vector<at::Tensor>& tensors) {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : tensors) {
        bytes += static_cast<int64_t>(tensor.nbytes());
    }
    return at::detail::empty_generic({bytes}, &host_allocator(), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::kByte,
                                     std::nullopt);
}

// Calls `copy` with each tensor and its part of `bytes`; tensors without elements have none.
template <class Copy>
void for_each_part(const std::vector<at::Tensor>& tensors, const at::Tensor& bytes, const Copy& copy) {
    int64_t offset = 0;
    for (const at::Tensor& tensor : tensors) {
        const auto length = static_cast<int64_t>(tensor.nbytes());
        if (length != 0) {
            copy(tensor, bytes.narrow(0, offset, length));
        }
        offset += length;
    }
}

void write(const at::Tensor& bytes, const at::Tensor& output) {
    if (output.is_contiguous()) {
        host_to_device(bytes, output, false);
        return;
    }
    const at::Tensor dense = at::empty_like(output, output.options(), c10::MemoryFormat::Contiguous);
    host_to_device(bytes, dense, false);
    output.copy_(dense);
}

}  // namespace

Staging::Staging(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs,
                 const CopyStreams& streams)
    : outputs_(outputs),
      streams_(streams),
      input_(pinned_bytes(inputs)),
      ready_(streams.from_device.device_index(), false) {
    // Neither gradients nor version counters take part: a collective is no operation of autograd.
    const at::AutoDispatchBelowADInplaceOrView guard;
    for (const at::Tensor& input : inputs) {
        inputs_.push_back(input.contiguous());
    }
    const c10::DeviceIndex device = streams.from_device.device_index();
    Event called(device, false);
    called.record(current_stream(device));
    called.block(streams.from_device);
    const c10::StreamGuard on_stream(streams.from_device);
    for_each_part(inputs_, input_,
                  [](const at::Tensor& tensor, const at::Tensor& bytes) { device_to_host(tensor, bytes, false); });
    ready_.record(streams.from_device);
}

at::Tensor& Staging::output() {
    if (!output_.defined()) {
        output_ = pinned_bytes(outputs_);
    }
    return output_;
}

void Staging::write_outputs() {
    if (outputs_.empty()) {
        return;
    }
    const at::AutoDispatchBelowADInplaceOrView guard;
    const c10::StreamGuard on_stream(streams_.to_device);
    for_each_part(outputs_, output(), [](const at::Tensor& tensor, const at::Tensor& bytes) { write(bytes, tensor); });
    synchronize_stream(streams_.to_device);
}

}  // namespace dipu::distributed
