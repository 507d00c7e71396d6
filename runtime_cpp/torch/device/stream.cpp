// Stream pools over the vendor's create_stream, with priorities where the vendor has them.
#include "stream.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>

#include "async_failure.h"
#include "device_api.h"
#include "memory/captures.h"
#include "use.h"
#include "wrapper/context.h"

namespace dipu {
namespace {

struct DeviceStreams {
    std::mutex mutex;
    diopiStreamHandle_t handles[kStreams] = {};
    std::atomic<bool> made[kStreams] = {};
    std::atomic<unsigned> next_low{0};
    std::atomic<unsigned> next_high{0};
};

// Never destroyed: streams are used until the process ends.
DeviceStreams& streams_of(c10::DeviceIndex device) {
    use_device();
    static DeviceStreams* const all = new DeviceStreams[kMaxDevices];
    return all[checked_device(device)];
}

// ids 1..kPoolSize have low priority, the rest of our own high.
bool is_high(c10::StreamId id) { return id > kPoolSize && id < kOwnStreams; }

diopiStreamHandle_t create(c10::StreamId id) {
    const diopiDeviceApi_t& api = device_api();
    diopiStreamHandle_t handle = nullptr;
    int32_t least = 0;
    int32_t greatest = 0;
    const bool prioritized = is_high(id) && api.create_stream_with_priority != nullptr &&
                             api.stream_priority_range != nullptr && api.stream_priority_range(&least, &greatest) == 0;
    check_device(prioritized ? api.create_stream_with_priority(&handle, greatest) : api.create_stream(&handle),
                 "create a stream");
    return handle;
}

diopiStreamHandle_t handle_of(c10::DeviceIndex device, c10::StreamId id) {
    TORCH_CHECK(id >= 0 && id < kStreams, "there is no stream ", id, " on dipu:", static_cast<int>(device));
    DeviceStreams& streams = streams_of(device);
    if (streams.made[id].load(std::memory_order_acquire)) {
        return streams.handles[id];
    }
    const std::lock_guard<std::mutex> lock(streams.mutex);
    if (!streams.made[id].load(std::memory_order_relaxed)) {
        TORCH_CHECK(id < kOwnStreams, "there is no stream ", id, " on dipu:", static_cast<int>(device));
        const DeviceScope scope(device);
        streams.handles[id] = create(id);
        streams.made[id].store(true, std::memory_order_release);
    }
    return streams.handles[id];
}

}  // namespace

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kPrivateUse1, device), id);
}

c10::Stream default_stream(c10::DeviceIndex device) { return stream_of(checked_device(device), 0); }

c10::Stream current_stream(c10::DeviceIndex device) {
    use_device();
    const c10::DeviceIndex index = checked_device(device);
    return stream_of(index, thread_devices.streams[index].id);
}

diopiStreamHandle_t start_current_stream(c10::DeviceIndex device) {
    CurrentStream& current = thread_devices.streams[device];
    current.native = handle_of(device, current.id);
    current.ready = true;
    return current.native;
}

c10::Stream exchange_stream(const c10::Stream& stream) {
    const c10::Stream previous = current_stream(stream.device_index());
    CurrentStream& current = thread_devices.streams[stream.device_index()];
    current.native = handle_of(stream.device_index(), stream.id());
    current.id = stream.id();
    current.ready = true;
    return previous;
}

c10::Stream pool_stream(c10::DeviceIndex device, int priority) {
    const c10::DeviceIndex index = checked_device(device);
    DeviceStreams& streams = streams_of(index);
    const bool high = priority < 0;
    const unsigned turn =
        (high ? streams.next_high : streams.next_low).fetch_add(1, std::memory_order_relaxed) % kPoolSize;
    const c10::StreamId id = 1 + (high ? kPoolSize : 0) + static_cast<c10::StreamId>(turn);
    handle_of(index, id);
    return stream_of(index, id);
}

c10::Stream external_stream(c10::DeviceIndex device, diopiStreamHandle_t native) {
    const c10::DeviceIndex index = checked_device(device);
    TORCH_CHECK(native != nullptr, "an external stream needs the vendor's handle, which is not null");
    DeviceStreams& streams = streams_of(index);
    const std::lock_guard<std::mutex> lock(streams.mutex);
    for (int id = 0; id < kStreams; ++id) {
        if (streams.made[id].load(std::memory_order_relaxed) && streams.handles[id] == native) {
            return stream_of(index, id);
        }
    }
    for (int id = kOwnStreams; id < kStreams; ++id) {
        if (!streams.made[id].load(std::memory_order_relaxed)) {
            streams.handles[id] = native;
            streams.made[id].store(true, std::memory_order_release);
            return stream_of(index, id);
        }
    }
    TORCH_CHECK(false, "dipu:", static_cast<int>(index), " knows ", kStreams - kOwnStreams,
                " external streams already");
}

int stream_priority(c10::StreamId id) { return is_high(id) ? -1 : 0; }

diopiStreamHandle_t native_stream(const c10::Stream& stream) { return handle_of(stream.device_index(), stream.id()); }

bool query_stream(const c10::Stream& stream) {
    const diopiDeviceApi_t& api = device_api();
    if (api.query_stream == nullptr) {
        synchronize_stream(stream);
        return true;
    }
    bool done = false;
    check_device(api.query_stream(native_stream(stream), &done), "query a stream");
    return done;
}

void synchronize_stream(const c10::Stream& stream) {
    check_not_recorded(stream.device_index(), kWaiting);
    const DeviceScope scope(stream.device_index());
    check_device(device_api().sync_stream(native_stream(stream)), "synchronize a stream");
    check_async_failure();
}

void synchronize_streams(c10::DeviceIndex device) {
    DeviceStreams& streams = streams_of(device);
    for (int id = 0; id < kOwnStreams; ++id) {
        if (streams.made[id].load(std::memory_order_acquire)) {
            synchronize_stream(stream_of(device, id));
        }
    }
}

}  // namespace dipu
