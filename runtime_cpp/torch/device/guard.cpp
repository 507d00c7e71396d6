// The guard implementation; the backward engine relies on its events to order its streams.
#include "guard.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "memory/allocator.h"
#include "device.h"
#include "event.h"
#include "stream.h"
#include "use.h"

namespace dipu {
namespace {

c10::Device device_at(c10::DeviceIndex index) { return c10::Device(c10::kPrivateUse1, index); }

Event& event_of(void* event) { return *static_cast<Event*>(event); }

class Guard final : public c10::impl::DeviceGuardImplInterface {
public:
    c10::DeviceType type() const override { return c10::kPrivateUse1; }

    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::DeviceIndex previous = current_device();
        setDevice(device);
        return device_at(previous);
    }
    c10::Device getDevice() const override { return device_at(current_device()); }
    void setDevice(c10::Device device) const override {
        TORCH_CHECK(device.is_privateuseone(), "expected a dipu device, not ", device);
        if (device.has_index()) {
            set_device(device.index());
        }
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override { set_device_unchecked(device.index()); }
    // By this torch decides how many backward threads the process gets, and on which devices a backward looks for streams.
    c10::DeviceIndex deviceCount() const noexcept override { return devices_in_use(); }
    void synchronizeDevice(const c10::DeviceIndex device) const override { synchronize_device(device); }

    c10::DeviceCapability getDeviceCapability(c10::Device /*device*/) const override {
        c10::DeviceCapability capability;
        // All but those that torch has no conversions of: quantized numbers, bits, and numbers of less than a byte.
        auto& types = capability.capability_data.supported_scalar_types;
        types.has_QInt8 = types.has_QUInt8 = types.has_QInt32 = types.has_QUInt4x2 = types.has_QUInt2x4 = 0;
        types.has_Bits1x8 = types.has_Bits2x4 = types.has_Bits4x2 = types.has_Bits8 = types.has_Bits16 = 0;
        types.has_UInt1 = types.has_UInt2 = types.has_UInt3 = types.has_UInt4 = 0;
        types.has_UInt5 = types.has_UInt6 = types.has_UInt7 = 0;
        types.has_Int1 = types.has_Int2 = types.has_Int3 = types.has_Int4 = 0;
        types.has_Int5 = types.has_Int6 = types.has_Int7 = 0;
        types.has_Float4_e2m1fn_x2 = 0;
        return capability;
    }

    c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
    c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(device.index()); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority) const override {
        return pool_stream(device.index(), high_priority ? -1 : 0);
    }
    c10::Stream getNewStream(c10::Device device, int priority) const override {
        return pool_stream(device.index(), priority);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
    void* getStreamNativeHandle(const c10::Stream stream) const override { return native_stream(stream); }
    bool queryStream(const c10::Stream& stream) const override { return query_stream(stream); }
    void synchronizeStream(const c10::Stream& stream) const override { synchronize_stream(stream); }

    void record(void** event, const c10::Stream& stream, const c10::DeviceIndex device,
                const c10::EventFlag flag) const override {
        if (*event == nullptr) {
            const c10::DeviceIndex index = device == -1 ? stream.device_index() : device;
            *event = new Event(index, flag == c10::EventFlag::BACKEND_DEFAULT);
        }
        event_of(*event).record(stream);
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (event != nullptr) {
            event_of(event).block(stream);
        }
    }
    bool queryEvent(void* event) const override { return event == nullptr || event_of(event).query(); }
    void synchronizeEvent(void* event) const override {
        if (event != nullptr) {
            event_of(event).synchronize();
        }
    }
    double elapsedTime(void* start, void* end, const c10::DeviceIndex /*device*/) const override {
        TORCH_CHECK(start != nullptr && end != nullptr,
                    "both events must be recorded before the time between them is read");
        return event_of(start).elapsed_ms(event_of(end));
    }
    void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
        delete static_cast<Event*>(event);
    }

    void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const override {
        device_allocator().recordStream(pointer, stream);
    }
};

}  // namespace

void register_guard() {
    // torch keeps the pointer until the process ends.
    static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, new Guard);
}

}  // namespace dipu
