// What the structured templates do with outputs, once for all operators; the messages are torch's own.
#include "structured.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>

#include "fast_path.h"

namespace dipu {
namespace {

constexpr c10::DispatchKeySet kDeviceKey(c10::DispatchKey::PrivateUse1);

c10::Allocator* device_allocator() {
    static c10::Allocator* const allocator = c10::GetAllocator(c10::kPrivateUse1);
    return allocator;
}

void check_same(const c10::TensorOptions& options, const at::Tensor& out) {
    TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
                out.dtype(), " instead");
    TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ",
                out.device(), " instead");
}

}  // namespace

at::Tensor new_contiguous(c10::IntArrayRef sizes, c10::ScalarType dtype, c10::DeviceIndex device) {
    const DeviceScope scope(device);
    return at::detail::empty_generic(sizes, device_allocator(), kDeviceKey, dtype, std::nullopt);
}

// Without the checks of at::detail::empty_generic: the sizes are those of a tensor.
at::Tensor new_like(const at::Tensor& input, c10::ScalarType dtype) {
    const DeviceScope scope(input.device().index());
    c10::Allocator* const allocator = device_allocator();
    const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(dtype);
    const auto bytes = static_cast<std::size_t>(input.numel()) * meta.itemsize();
    auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                         c10::SymInt(static_cast<int64_t>(bytes)),
                                                         allocator->allocate(bytes), allocator, true);
    at::Tensor out = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), kDeviceKey, meta);
    out.unsafeGetTensorImpl()->set_sizes_contiguous(input.sizes());
    return out;
}

at::Tensor new_restrided(const at::Tensor& input, c10::ScalarType dtype) {
    const DeviceScope scope(input.device().index());
    const auto strides = input.is_non_overlapping_and_dense() ? input.strides().vec()
                                                              : at::infer_dense_strides(input.sizes(), input.strides());
    return at::detail::empty_strided_generic(input.sizes(), strides, device_allocator(), kDeviceKey, dtype);
}

at::Tensor new_output(c10::IntArrayRef sizes, c10::IntArrayRef strides, const c10::TensorOptions& options) {
    const DeviceScope scope(output_device(options));
    const c10::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
    if (strides.empty()) {
        return at::detail::empty_generic(sizes, device_allocator(), kDeviceKey, dtype, options.memory_format_opt());
    }
    return at::detail::empty_strided_generic(sizes, strides, device_allocator(), kDeviceKey, dtype);
}

void resize_output(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                   const c10::TensorOptions& options) {
    check_same(options, out);
    // Strides are advice: a tensor that already has the size keeps its own.
    if (!at::native::resize_output(out, sizes)) {
        return;
    }
    if (!strides.empty()) {
        out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    } else if (options.memory_format_opt().has_value()) {
        out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
    }
}

void check_inplace(const at::Tensor& self, c10::IntArrayRef sizes, const c10::TensorOptions& options) {
    TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: ", "input tensor dtype ", self.dtype(),
                " and output tensor dtype ", options.dtype(), " should match");
    TORCH_CHECK(options.device() == self.device(), "Bad in-place call: ", "input tensor device ", self.device(),
                " and output tensor device ", options.device(), " should match");
    TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: ", "input tensor size ", self.sizes(),
                " and output tensor size ", sizes, " should match");
}

std::optional<at::Tensor> stride_proxy(const at::Tensor& out, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                       const c10::TensorOptions& options) {
    if (out.strides() == strides) {
        return std::nullopt;
    }
    return new_output(sizes, strides, options);
}

void copy_proxy(const at::Tensor& out, const at::Tensor& proxy) { out.copy_(proxy); }

}  // namespace dipu
