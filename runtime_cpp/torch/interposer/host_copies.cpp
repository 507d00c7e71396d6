// Whole storages are copied, and tensors are laid over them, so that what shares memory on the device shares it on the CPU.
#include "host_copies.h"

#include <ATen/native/Resize.h>

#include <algorithm>

namespace dipu {
namespace {

// The whole storage of `tensor` as bytes, where it lies.
at::Tensor bytes_of(const at::Tensor& tensor) {
    at::Tensor bytes = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(tensor.storage()), tensor.key_set(),
                                                                c10::scalarTypeToTypeMeta(at::kByte));
    bytes._set_conj(false);
    bytes._set_neg(false);
    bytes.unsafeGetTensorImpl()->set_sizes_contiguous({static_cast<int64_t>(tensor.storage().nbytes())});
    return bytes;
}

at::Tensor laid_over(const at::Tensor& bytes, const at::Tensor& like) {
    at::Tensor tensor =
        at::detail::make_tensor<c10::TensorImpl>(c10::Storage(bytes.storage()), bytes.key_set(), like.dtype());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
    tensor._set_conj(like.is_conj());
    tensor._set_neg(like.is_neg());
    return tensor;
}

}  // namespace

at::Tensor HostCopies::copied(const at::Tensor& tensor, bool written) {
    if (!tensor.defined() || !tensor.is_privateuseone()) {
        return tensor;
    }
    device_ = tensor.device();
    const auto known =
        std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) { return copy.given.is_same(tensor); });
    if (known != copies_.end()) {
        known->written = known->written || written;
        return known->host;
    }
    at::Tensor& bytes = bytes_[tensor.storage().unsafeGetStorageImpl()];
    if (!bytes.defined()) {
        bytes = bytes_of(tensor).cpu();
    }
    copies_.push_back({tensor, laid_over(bytes, tensor), written});
    return copies_.back().host;
}

c10::IValue HostCopies::copied(const c10::IValue& value, bool written) {
    if (value.isTensor()) {
        return copied(value.toTensor(), written);
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> tensors;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            tensors.push_back(copied(tensor, written));
        }
        return tensors;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
            tensors.push_back(tensor.has_value() ? std::optional(copied(*tensor, written)) : std::nullopt);
        }
        return tensors;
    }
    if (value.isDevice() && value.toDevice().is_privateuseone()) {
        device_ = value.toDevice();
        return c10::Device(c10::kCPU);
    }
    return value;
}

HostCopies::HostCopies(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t begin = stack.size() - arguments.size();
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const c10::AliasInfo* const alias = arguments[index].alias_info();
        stack[begin + index] = copied(stack[begin + index], alias != nullptr && alias->isWrite());
    }
}

void HostCopies::run(const c10::OperatorHandle& op, torch::jit::Stack& stack) const {
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
}

at::Tensor HostCopies::returned(const at::Tensor& result) const {
    if (!result.defined()) {
        return result;
    }
    const auto known =
        std::find_if(copies_.begin(), copies_.end(), [&](const Copy& copy) { return copy.host.is_same(result); });
    return known != copies_.end() ? known->given : result.to(device_);
}

void HostCopies::give_back(const c10::OperatorHandle& op, torch::jit::Stack& stack) const {
    for (const Copy& copy : copies_) {
        if (!copy.written) {
            continue;
        }
        if (copy.given.sizes() == copy.host.sizes()) {
            bytes_of(copy.given).copy_(bytes_.at(copy.given.storage().unsafeGetStorageImpl()));
        } else {
            at::native::resize_output(copy.given, copy.host.sizes());
            copy.given.copy_(copy.host);
        }
    }
    for (std::size_t index = stack.size() - op.schema().returns().size(); index < stack.size(); ++index) {
        if (stack[index].isTensor()) {
            stack[index] = returned(stack[index].toTensor());
        } else if (stack[index].isTensorList()) {
            c10::List<at::Tensor> results;
            for (const at::Tensor& tensor : stack[index].toTensorVector()) {
                results.push_back(returned(tensor));
            }
            stack[index] = results;
        }
    }
}

}  // namespace dipu
