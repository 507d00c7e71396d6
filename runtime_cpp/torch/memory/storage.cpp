// Making, resizing and re-pointing device tensors: the operators of storage that torch has no generic kernel for.
#include "library.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <c10/core/Allocator.h>

#include "allocator.h"
#include "device/device.h"

namespace dipu {
namespace {

constexpr c10::DispatchKeySet kDeviceKey(c10::DispatchKey::PrivateUse1);

// Whether `self.data = from` is allowed, by which modules move their parameters. Without this torch gives each module new ones:
// tied weights come apart, and hooks, attributes and weak references are lost. The rule is torch's, with dipu for CUDA.
bool has_compatible_shallow_copy_type(const at::Tensor& self, const at::Tensor& from) {
    const auto for_cuda = [](c10::DispatchKeySet keys) {
        constexpr auto ours = c10::BackendComponent::PrivateUse1Bit;
        return keys.has_backend(ours) ? keys.remove_backend(ours) | c10::DispatchKeySet(c10::BackendComponent::CUDABit)
                                      : keys;
    };
    const auto likeness = c10::make_intrusive<c10::TensorImpl>(for_cuda(self.key_set()), self.dtype(), self.device());
    return likeness->has_compatible_shallow_copy_type(for_cuda(from.key_set()));
}

c10::DeviceIndex device_for(const std::optional<c10::Device>& device, const std::optional<c10::Layout>& layout,
                            const std::optional<bool>& pin_memory) {
    TORCH_CHECK(layout.value_or(c10::kStrided) == c10::kStrided, "dipu tensors are strided; the layout ", *layout,
                " is not supported");
    TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
    return device.has_value() ? checked_device(device->index()) : current_device();
}

// Whether memory that nobody has written must be the same each time: torch.utils.deterministic.fill_uninitialized_memory.
bool fills_memory() {
    const at::Context& context = at::globalContext();
    return context.deterministicAlgorithms() && context.deterministicFillUninitializedMemory();
}

at::Tensor filled(at::Tensor tensor) {
    if (fills_memory()) [[unlikely]] {
        at::native::fill_empty_deterministic_(tensor);
    }
    return tensor;
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                 std::optional<c10::Device> device, std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
    const DeviceScope scope(device_for(device, layout, pin_memory));
    return filled(
        at::detail::empty_generic(size, &device_allocator(), kDeviceKey, c10::dtype_or_default(dtype), memory_format));
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
    const DeviceScope scope(device_for(device, layout, pin_memory));
    return filled(
        at::detail::empty_strided_generic(size, stride, &device_allocator(), kDeviceKey, c10::dtype_or_default(dtype)));
}

// Grows the storage when the sizes and strides reach beyond it; the memory is the device's, so torch's own resize, which
// copies on the host, must not see it.
void grow_storage(c10::TensorImpl& tensor) {
    if (tensor.numel() == 0) {
        return;
    }
    const c10::Storage& storage = tensor.storage();
    TORCH_CHECK(storage, "Tensor: invalid null storage");
    const std::size_t needed = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                                                static_cast<std::size_t>(tensor.storage_offset()));
    if (needed > storage.nbytes()) {
        at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(storage, needed);
    }
}

const at::Tensor& resize_(const at::Tensor& self, c10::IntArrayRef size,
                          std::optional<c10::MemoryFormat> memory_format) {
    c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
    const bool fills = fills_memory();
    const int64_t before = fills ? static_cast<int64_t>(impl.storage().nbytes()) : 0;
    if (impl.sizes() != size) {
        impl.set_sizes_contiguous(size);
        grow_storage(impl);
    }
    if (memory_format.has_value()) {
        TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
        impl.empty_tensor_restride(*memory_format);
    }
    if (fills) [[unlikely]] {
        at::native::fill_resize_deterministic_(self, before);
    }
    return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage storage, int64_t offset, c10::IntArrayRef size,
                               c10::IntArrayRef stride) {
    at::native::checkSetStorage(self, storage, offset, size, stride);
    c10::TensorImpl& impl = *self.unsafeGetTensorImpl();
    impl.set_storage_offset(offset);
    if (stride.data() != nullptr && stride.size() == size.size()) {
        impl.set_sizes_and_strides(size, stride);
    } else {
        impl.set_sizes_contiguous(size);
    }
    grow_storage(impl);
    return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage) {
    const auto elements = static_cast<int64_t>(storage.nbytes() / self.itemsize());
    return set_storage_offset(self, std::move(storage), 0, {elements}, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
    const at::Tensor none = empty({0}, self.scalar_type(), std::nullopt, self.device(), std::nullopt, std::nullopt);
    return set_storage_offset(self, none.storage(), 0, {0}, {});
}

void record_stream(at::Tensor& self, c10::Stream stream) {
    device_allocator().recordStream(self.storage().data_ptr(), stream);
}

}  // namespace

void register_storage(torch::Library& library) {
    library.impl("empty.memory_format", &empty);
    library.impl("empty_strided", &empty_strided);
    library.impl("resize_", &resize_);
    library.impl("set_.source_Storage", &set_storage);
    library.impl("set_.source_Storage_storage_offset", &set_storage_offset);
    library.impl("set_.source_Tensor", &at::native::set_tensor_);
    library.impl("set_", &set_nothing);
    library.impl("is_set_to", &at::native::is_set_to);
    library.impl("record_stream", &record_stream);
    library.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

}  // namespace dipu
