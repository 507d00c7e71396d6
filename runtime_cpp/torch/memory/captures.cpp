// The streams that are recorded, one for a device at most.
#include "captures.h"

#include <array>
#include <thread>

#include "device/device.h"

namespace dipu {

std::atomic<int> recorded_streams{0};

namespace {

struct Recorded {
    std::atomic<c10::StreamId> stream{-1};  // -1 for none
    std::atomic<int> pool{kNoPool};
    std::atomic<CapturedDraws*> draws{nullptr};
    std::atomic<std::thread::id> thread{};  // the only one that it is about; none for all
};

Recorded& recorded(c10::DeviceIndex device) {
    static auto& all = *new std::array<Recorded, kMaxDevices>;
    return all[static_cast<std::size_t>(device)];
}

}  // namespace

int recorded_pool(c10::DeviceIndex device, c10::StreamId stream) {
    const Recorded& found = recorded(device);
    return found.stream.load() == stream ? found.pool.load() : kNoPool;
}

bool is_recorded(c10::DeviceIndex device) {
    if (recorded_streams.load(std::memory_order_relaxed) == 0 || recorded(device).stream.load() < 0) {
        return false;
    }
    const std::thread::id only = recorded(device).thread.load();
    return only == std::thread::id() || only == std::this_thread::get_id();
}

CapturedDraws* recorded_draws(const c10::Stream& stream) {
    const Recorded& found = recorded(stream.device_index());
    return found.stream.load() == stream.id() ? found.draws.load() : nullptr;
}

void start_record(const c10::Stream& stream, int pool, CapturedDraws& draws, RecordedThreads threads) {
    c10::StreamId none = -1;
    Recorded& place = recorded(stream.device_index());
    TORCH_CHECK(place.stream.compare_exchange_strong(none, stream.id()),
                "another graph is recorded on dipu:", static_cast<int>(stream.device_index()),
                "; end its capture first");
    place.pool.store(pool);
    place.draws.store(&draws);
    place.thread.store(threads == RecordedThreads::kOwn ? std::this_thread::get_id() : std::thread::id());
    recorded_streams.fetch_add(1);
}

void stop_record(const c10::Stream& stream) {
    Recorded& place = recorded(stream.device_index());
    place.pool.store(kNoPool);
    place.draws.store(nullptr);
    place.stream.store(-1);
    recorded_streams.fetch_sub(1);
}

}  // namespace dipu
