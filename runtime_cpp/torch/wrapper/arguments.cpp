// The cold parts of the argument classes: conversions, temporaries and their way back.
#include "arguments.h"

#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>

#include "handles.h"

namespace dipu {

at::Tensor converted(const at::Tensor& tensor, c10::ScalarType dtype, c10::Device device) {
    if (!is_host_scalar(tensor)) {
        check_device(tensor, device);
    }
    // Through copy_, which honours the conj and neg bits of its source.
    at::Tensor copy = at::empty_like(tensor, tensor.options().dtype(dtype).device(device));
    copy._set_conj(false);
    copy._set_neg(false);
    copy.copy_(tensor);
    return copy;
}

void check_device(const at::Tensor& tensor, c10::Device device) {
    TORCH_CHECK(!tensor.defined() || tensor.device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
                tensor.device(), "!");
}

const at::Tensor& undefined() {
    static const at::Tensor none;
    return none;
}

void Out::set_temporary(c10::ScalarType dtype) {
    temporary_ = at::empty_like(*tensor_, tensor_->options().dtype(dtype));
    temporary_._set_conj(false);
    temporary_._set_neg(false);
}

void Out::copy_back() const { tensor_->copy_(temporary_); }

InOut::InOut(const at::Tensor& tensor, c10::ScalarType dtype) : out_(tensor, dtype) {
    check_device(tensor, here());
    if (&out_.tensor() != &tensor) {
        out_.tensor().copy_(tensor);
    }
}

void InList::append(const std::optional<at::Tensor>& tensor, std::optional<c10::ScalarType> dtype, c10::Device device) {
    if (!tensor.has_value() || !tensor->defined()) {
        tensors_.emplace_back();
        return;
    }
    const In input(*tensor, dtype.value_or(tensor->scalar_type()), device);
    tensors_.push_back(input.tensor());
}

}  // namespace dipu
