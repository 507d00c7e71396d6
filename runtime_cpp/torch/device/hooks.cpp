// The hooks over device, generator, allocators and copy.
#include "hooks.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>

#include "memory/allocator.h"
#include "device.h"
#include "device_api.h"
#include "generator.h"
#include "memory/host_allocator.h"
#include "stream.h"
#include "use.h"

namespace dipu {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
public:
    void init() const override {}
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return device_count() > 0; }
    bool hasPrimaryContext(c10::DeviceIndex device) const override { return device >= 0 && device < devices_in_use(); }
    c10::DeviceIndex deviceCount() const override { return device_count(); }
    c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
    void setCurrentDevice(c10::DeviceIndex device) const override { set_device(device); }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        const c10::DeviceIndex previous = current_device();
        set_device(device);
        return previous;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        return device < 0 ? current_device() : exchangeDevice(device);
    }

    const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override {
        return default_generator(device);
    }
    at::Generator getNewGenerator(c10::DeviceIndex device) const override { return new_generator(device); }

    at::Device getDeviceFromPtr(void* pointer) const override {
        const c10::DeviceIndex device = device_of_pointer(pointer);
        TORCH_CHECK(device >= 0, "the pointer does not lie in dipu memory");
        return at::Device(c10::kPrivateUse1, device);
    }
    // What torch makes with pin_memory=True is CUDA's where torch has CUDA; only copies of the own memory go on behind the host.
    bool isPinnedPtr(const void* pointer) const override {
        return is_pinned(pointer) || at::detail::getCUDAHooks().isPinnedPtr(pointer);
    }
    at::Allocator* getPinnedMemoryAllocator() const override { return &host_allocator(); }

    void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t bytes) const override {
        c10::StorageImpl& impl = *storage.unsafeGetStorageImpl();
        TORCH_CHECK(impl.resizable(), "Trying to resize storage that is not resizable");
        const DeviceScope scope(impl.device().index());
        c10::DataPtr grown = device_allocator().allocate(bytes);
        const std::size_t kept = std::min(bytes, impl.nbytes());
        if (kept != 0) {
            const c10::Stream stream = current_stream(impl.device().index());
            device_allocator().recordStream(impl.data_ptr(), stream);
            check_device(device_api().memcpy_d2d_async(native_stream(stream), grown.get(), impl.data(), kept),
                         "copy device memory");
        }
        impl.set_data_ptr_noswap(std::move(grown));
        impl.set_nbytes(bytes);
    }
};

}  // namespace

void register_hooks() {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    // Else torch does not ask whether memory is pinned, unless it made such memory for dipu itself.
    at::globalContext().lazyInitDevice(c10::kPrivateUse1);
}

}  // namespace dipu
