// The profiler's two ways to ask a backend: a kineto session for torch.profiler, and events for use_kineto=False.
#include "profiler.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "device/event.h"
#include "kineto_session.h"
#include "device/stream.h"

namespace dipu {

constinit std::atomic<bool> profiled{false};

namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

class Stubs final : public torch::profiler::impl::ProfilerStubs {
public:
    void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
        const c10::DeviceIndex current = current_device();
        if (device != nullptr) {
            *device = current;
        }
        auto mark = std::make_shared<Event>(current, true);
        if (cpu_ns != nullptr) {
            *cpu_ns = c10::getTime();
        }
        mark->record(current_stream(current));
        *event = std::move(mark);
    }
    // Microseconds.
    float elapsed(const ProfilerVoidEventStub* first, const ProfilerVoidEventStub* second) const override {
        const auto& start = *static_cast<const Event*>(first->get());
        const auto& end = *static_cast<const Event*>(second->get());
        start.synchronize();
        end.synchronize();
        return static_cast<float>(start.elapsed_ms(end) * 1000);
    }
    // The contract has no marks and ranges of a vendor's own tools.
    void mark(const char* /*name*/) const override {}
    void rangePush(const char* /*name*/) const override {}
    void rangePop() const override {}
    bool enabled() const override { return true; }
    void onEachDevice(std::function<void(int)> action) const override {
        for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
            const DeviceScope scope(device);
            action(device);
        }
    }
    void synchronize() const override { synchronize_device(current_device()); }
};

}  // namespace

void register_profiler() {
    torch::profiler::impl::registerPrivateUse1Methods(new Stubs);
    register_kineto();
}

}  // namespace dipu
