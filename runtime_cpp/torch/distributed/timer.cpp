// Times the passes of DistributedDataParallel by events, for what it logs.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "device/event.h"
#include "device/stream.h"

namespace dipu::distributed {
namespace {

class DeviceTimer final : public c10d::Timer {
public:
    explicit DeviceTimer(c10::Device device) : device_(device.index()) {}

    void record(Event event) override {
        c10d::Timer::record(event);  // when the host was there, which is logged as well
        std::unique_ptr<dipu::Event>& recorded = at(event);
        recorded = std::make_unique<dipu::Event>(device_, true);
        recorded->record(current_stream(device_));
    }

    // Nanoseconds, as torch wants them.
    std::optional<int64_t> measureDifference(Event start, Event end) override {
        if (at(start) == nullptr || at(end) == nullptr) {
            return std::nullopt;
        }
        at(start)->synchronize();
        at(end)->synchronize();
        const double milliseconds = at(start)->elapsed_ms(*at(end));
        // Events of two iterations, when one of them was left out.
        return milliseconds < 0 ? std::nullopt : std::optional<int64_t>(std::llround(milliseconds * 1e6));
    }

private:
    std::unique_ptr<dipu::Event>& at(Event event) { return events_.at(static_cast<std::size_t>(event)); }

    c10::DeviceIndex device_;
    std::array<std::unique_ptr<dipu::Event>, static_cast<std::size_t>(Event::kBackwardCommEnd) + 1> events_;
};

}  // namespace
}  // namespace dipu::distributed

namespace c10d {
namespace {

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, dipu::distributed::DeviceTimer)

}  // namespace
}  // namespace c10d
