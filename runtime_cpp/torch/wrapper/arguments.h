// Tensor arguments made ready for a vendor function: on its device, in its dtype, without lazy conj or neg bits.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <optional>

#include "device/device.h"
#include "handles.h"

namespace dipu {

// A copy of `tensor` on `device` in `dtype`, without conj and neg bits.
DIPU_API at::Tensor converted(const at::Tensor& tensor, c10::ScalarType dtype, c10::Device device);

// Throws c10::Error, in torch's words, where a tensor is not on `device`.
DIPU_API void check_device(const at::Tensor& tensor, c10::Device device);

// The device of the call that runs.
inline c10::Device here() { return c10::Device(c10::kPrivateUse1, current_device()); }

inline bool has_lazy_bits(const at::Tensor& tensor) {
    constexpr c10::DispatchKeySet lazy({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative});
    return tensor.key_set().has_any(lazy);
}

// What stands for an optional tensor that is absent.
DIPU_API const at::Tensor& undefined();

// An input. Nothing is copied when the tensor is as the function wants it.
class In {
public:
    In(const at::Tensor& tensor, c10::Device device) : tensor_(&tensor) {
        if (tensor.defined()) {
            convert(tensor.scalar_type(), device);
        }
    }
    In(const at::Tensor& tensor, c10::ScalarType dtype, c10::Device device) : tensor_(&tensor) {
        if (tensor.defined()) {
            convert(dtype, device);
        }
    }
    In(const std::optional<at::Tensor>& tensor, c10::Device device) : In(tensor ? *tensor : undefined(), device) {}
    In(const std::optional<at::Tensor>& tensor, c10::ScalarType dtype, c10::Device device)
        : In(tensor ? *tensor : undefined(), dtype, device) {}
    In(const In&) = delete;
    In& operator=(const In&) = delete;

    const at::Tensor& tensor() const { return *tensor_; }
    operator diopiConstTensorHandle_t() const { return handle(*tensor_); }

private:
    void convert(c10::ScalarType dtype, c10::Device device) {
        if (tensor_->scalar_type() != dtype || tensor_->device() != device || has_lazy_bits(*tensor_)) [[unlikely]] {
            copy_ = converted(*tensor_, dtype, device);
            tensor_ = &copy_;
        }
    }

    const at::Tensor* tensor_;
    at::Tensor copy_;
};

// An output. When the function computes in another dtype than the tensor's, it writes a temporary and flush copies it.
class Out {
public:
    explicit Out(const at::Tensor& tensor)
        : Out(tensor, tensor.defined() ? tensor.scalar_type() : c10::ScalarType::Undefined) {}
    Out(const at::Tensor& tensor, c10::ScalarType dtype) : tensor_(&tensor) {
        if (tensor.defined() && (tensor.scalar_type() != dtype || has_lazy_bits(tensor))) [[unlikely]] {
            set_temporary(dtype);
        }
    }
    Out(const Out&) = delete;
    Out& operator=(const Out&) = delete;

    const at::Tensor& tensor() const { return temporary_.defined() ? temporary_ : *tensor_; }
    operator diopiTensorHandle_t() const { return out_handle(tensor()); }

    // Copies a temporary to the tensor. Returns true, to close an `&&` chain.
    bool flush() const {
        if (temporary_.defined()) [[unlikely]] {
            copy_back();
        }
        return true;
    }

private:
    DIPU_API void set_temporary(c10::ScalarType dtype);
    DIPU_API void copy_back() const;

    const at::Tensor* tensor_;
    at::Tensor temporary_;
};

// An argument that is read and written: an Out whose temporary starts as a copy of the tensor.
class InOut {
public:
    explicit InOut(const at::Tensor& tensor)
        : InOut(tensor, tensor.defined() ? tensor.scalar_type() : c10::ScalarType::Undefined) {}
    explicit InOut(const std::optional<at::Tensor>& tensor) : InOut(tensor ? *tensor : undefined()) {}
    DIPU_API InOut(const at::Tensor& tensor, c10::ScalarType dtype);

    const at::Tensor& tensor() const { return out_.tensor(); }
    operator diopiTensorHandle_t() const { return out_; }
    bool flush() const { return out_.flush(); }

private:
    Out out_;
};

// A list of inputs for `diopiConstTensorHandle_t*` and its count. Takes at::TensorList, at::ITensorListRef,
// std::vector<at::Tensor> and lists of optional tensors (null handles where absent).
class InList {
public:
    template <class List>
    InList(const List& tensors, c10::Device device) {
        fill(tensors, std::nullopt, device);
    }
    template <class List>
    InList(const List& tensors, c10::ScalarType dtype, c10::Device device) {
        fill(tensors, dtype, device);
    }
    InList(const InList&) = delete;
    InList& operator=(const InList&) = delete;

    operator diopiConstTensorHandle_t*() { return handles_.data(); }
    int64_t size() const { return static_cast<int64_t>(handles_.size()); }

private:
    template <class List>
    void fill(const List& tensors, std::optional<c10::ScalarType> dtype, c10::Device device) {
        tensors_.reserve(tensors.size());
        for (const auto& item : tensors) {
            append(std::optional<at::Tensor>(item), dtype, device);
        }
        for (const at::Tensor& tensor : tensors_) {
            handles_.push_back(handle(tensor));
        }
    }
    DIPU_API void append(const std::optional<at::Tensor>& tensor, std::optional<c10::ScalarType> dtype,
                         c10::Device device);

    c10::SmallVector<at::Tensor, 8> tensors_;
    c10::SmallVector<diopiConstTensorHandle_t, 8> handles_;
};

// A list of tensors that the function writes, for `diopiTensorHandle_t*`. The tensors are taken as they are.
class OutList {
public:
    template <class List>
    explicit OutList(const List& tensors) {
        const c10::Device device = here();
        for (const at::Tensor& tensor : tensors) {
            check_device(tensor, device);
            handles_.push_back(out_handle(tensor));
        }
    }
    operator diopiTensorHandle_t*() { return handles_.data(); }
    int64_t size() const { return static_cast<int64_t>(handles_.size()); }

private:
    c10::SmallVector<diopiTensorHandle_t, 8> handles_;
};

// A tensor that the callee allocates, for `diopiTensorHandle_t*` of functions such as diopiNonzero.
class CalleeOut {
public:
    operator diopiTensorHandle_t*() { return &th_; }
    // The tensor, which the context of the call owns: take it before the context goes.
    at::Tensor tensor() const { return th_ != nullptr ? tensor_of(th_) : at::Tensor(); }

private:
    diopiTensorHandle_t th_ = nullptr;
};

}  // namespace dipu
