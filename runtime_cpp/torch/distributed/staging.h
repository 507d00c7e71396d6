// The host images of the tensors of one collective: copied from the device before it, and to the device after it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <vector>

#include "device/event.h"

namespace dipu::distributed {

// The streams that copy for a group, apart from the caller's and from each other: a copy to the device must not wait for
// the next collective's inputs.
struct CopyStreams {
    c10::Stream from_device;
    c10::Stream to_device;
};

class Staging {
public:
    // Queues the copies of `inputs` behind the caller's current stream of the device, and returns without waiting.
    Staging(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs, const CopyStreams& streams);
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // Pinned bytes: the elements of all inputs, one after another.
    const at::Tensor& input() const { return input_; }
    // Whether the inputs are on the host, and all that the caller had queued before is done, which may have read the outputs.
    bool is_ready() const { return ready_.query(); }
    void wait_until_ready() const { ready_.synchronize(); }

    // Pinned bytes for the outputs, of the same form; made when first asked for.
    at::Tensor& output();
    // Takes `bytes` as what output() is, e.g. the input, in which a reduction leaves its result.
    void take_output(const at::Tensor& bytes) { output_ = bytes; }

    // To be called when ready. Copies output() to the outputs, and returns when that is done: no stream has to wait for
    // them, and no tensor has to outlive this object.
    void write_outputs();

private:
    std::vector<at::Tensor> inputs_;  // contiguous; held until they are read
    std::vector<at::Tensor> outputs_;
    CopyStreams streams_;
    at::Tensor input_;
    at::Tensor output_;
    Event ready_;
};

}  // namespace dipu::distributed
