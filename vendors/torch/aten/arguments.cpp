// The contract's parameters as ATen's arguments.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>

#include "aten/call.h"

namespace diopi::aten {
namespace {

template <class Handle>
std::vector<at::Tensor> all_of(const Handle* handles, int64_t count) {
    std::vector<at::Tensor> found;
    found.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) found.push_back(tensor(handles[i]));
    return found;
}

bool is_integer(diopiDtype_t dtype) { return dtype <= diopi_dtype_uint64 || dtype == diopi_dtype_bool; }

}  // namespace

at::Tensor tensor(diopiConstTensorHandle_t handle) {
    if (handle == nullptr) throw Failure(diopiErrorOccurred, "a tensor is missing: its handle is null");
    const void* data = nullptr;
    diopiSize_t sizes{};
    diopiSize_t strides{};
    diopiDtype_t dtype = diopi_dtype_unsupported;
    check(diopiGetTensorDataConst(handle, &data), "a tensor gives no address");
    check(diopiGetTensorShape(handle, &sizes), "a tensor gives no sizes");
    check(diopiGetTensorStride(handle, &strides), "a tensor gives no strides");
    check(diopiGetTensorDtype(handle, &dtype), "a tensor gives no dtype");
    return at::for_blob(const_cast<void*>(data), ints(sizes))
        .strides(ints(strides))
        .options(at::TensorOptions().dtype(scalar_type(dtype)).device(at::kCPU))
        .make_tensor();
}

at::Tensor raised(diopiConstTensorHandle_t handle, diopiConstTensorHandle_t out) {
    return tensor(handle).to(scalar_type(out));
}

bool same_rank(diopiConstTensorHandle_t one, diopiConstTensorHandle_t other) {
    return tensor(one).dim() == tensor(other).dim();
}

std::optional<at::Tensor> maybe_tensor(diopiConstTensorHandle_t handle) {
    return handle == nullptr ? std::nullopt : std::optional<at::Tensor>(tensor(handle));
}

std::vector<at::Tensor> tensors(const diopiConstTensorHandle_t* handles, int64_t count) {
    return all_of(handles, count);
}

std::vector<at::Tensor> tensors(const diopiTensorHandle_t* handles, int64_t count) { return all_of(handles, count); }

c10::List<std::optional<at::Tensor>> maybe_tensors(const diopiConstTensorHandle_t* handles, int64_t count) {
    c10::List<std::optional<at::Tensor>> found;
    for (int64_t i = 0; i < count; ++i) found.push_back(maybe_tensor(handles[i]));
    return found;
}

at::Scalar number(const diopiScalar_t& scalar) {
    if (scalar.stype == diopi_dtype_bool) return at::Scalar(scalar.ival != 0);
    return is_integer(scalar.stype) ? at::Scalar(scalar.ival) : at::Scalar(scalar.fval);
}

at::Scalar number(const diopiScalar_t* scalar) {
    if (scalar == nullptr) throw Failure(diopiErrorOccurred, "a number is missing: its pointer is null");
    return number(*scalar);
}

std::optional<at::Scalar> maybe_number(const diopiScalar_t* scalar) {
    return scalar == nullptr ? std::nullopt : std::optional<at::Scalar>(number(*scalar));
}

at::Tensor number_tensor(const diopiScalar_t* scalar) {
    const at::Scalar value = number(scalar);
    at::Tensor wrapped = at::scalar_tensor(value, at::TensorOptions().dtype(value.type()).device(at::kCPU));
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return wrapped;
}

at::OptionalIntArrayRef maybe_ints(const diopiSize_t* size) {
    return size == nullptr ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(ints(*size));
}

at::OptionalSymIntArrayRef maybe_symints(const diopiSize_t* size) {
    return size == nullptr ? at::OptionalSymIntArrayRef() : at::OptionalSymIntArrayRef(symints(*size));
}

std::optional<std::string_view> maybe_text(const char* text) {
    if (text == nullptr || std::string_view(text) == "none") return std::nullopt;
    return text;
}

std::optional<std::string_view> rounding(diopiRoundMode_t mode) {
    switch (mode) {
        case RoundModeTrunc: return "trunc";
        case RoundModeFloor: return "floor";
        default: return std::nullopt;
    }
}

at::MemoryFormat format(diopiMemoryFormat_t format) {
    switch (format) {
        case Contiguous: return at::MemoryFormat::Contiguous;
        case ChannelsLast: return at::MemoryFormat::ChannelsLast;
        case ChannelsLast3d: return at::MemoryFormat::ChannelsLast3d;
        case Preserve: return at::MemoryFormat::Preserve;
        default: refuse("this memory format");
    }
}

}  // namespace diopi::aten
