// The device contract of a chip whose runtime speaks as CUDA's does: the nine classic functions and the full table.
//
// A vendor's device.cpp defines DIOPI_RUNTIME(name), which puts the runtime's prefix before a name, and includes this
// file once. Beside it stand what runtimes spell in ways of their own: device_properties(), pointer_device(),
// malloc_host(), last_device_error(), and begin_capture(), end_capture(), launch_graph() and destroy_graph(). A chip that
// may work in the calling thread names the function that says so: DIOPI_WORKS_IN_CALLER.
#ifndef DIOPI_RUNTIME
#error "define DIOPI_RUNTIME(name), e.g. cuda##name, before this file is included"
#endif

#ifndef DIOPI_WORKS_IN_CALLER
#define DIOPI_WORKS_IN_CALLER nullptr
#endif

#include <diopi/device.h>

namespace {

using Status = DIOPI_RUNTIME(Error_t);
using Stream = DIOPI_RUNTIME(Stream_t);
using Event = DIOPI_RUNTIME(Event_t);

constexpr Status kDone = DIOPI_RUNTIME(Success);

Stream stream_of(diopiStreamHandle_t stream) { return static_cast<Stream>(stream); }
Event event_of(diopiEventHandle_t event) { return static_cast<Event>(event); }

// Calls that name a device work on it and leave the thread's current device as it was.
class DeviceScope {
public:
    explicit DeviceScope(int32_t device) : status_(DIOPI_RUNTIME(GetDevice)(&previous_)) {
        if (status_ == kDone) status_ = DIOPI_RUNTIME(SetDevice)(device);
    }
    ~DeviceScope() {
        if (status_ == kDone) static_cast<void>(DIOPI_RUNTIME(SetDevice)(previous_));
    }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    Status status() const { return status_; }

private:
    int32_t previous_ = 0;
    Status status_;
};

// "Not ready" is an answer, not an error.
int32_t answer(Status status, bool* done) {
    *done = status == kDone;
    return status == DIOPI_RUNTIME(ErrorNotReady) ? kDone : status;
}

int32_t create_stream(diopiStreamHandle_t* stream) {
    return DIOPI_RUNTIME(StreamCreate)(reinterpret_cast<Stream*>(stream));
}

int32_t create_stream_with_priority(diopiStreamHandle_t* stream, int32_t priority) {
    return DIOPI_RUNTIME(StreamCreateWithPriority)(reinterpret_cast<Stream*>(stream), 0, priority);
}

int32_t destroy_stream(diopiStreamHandle_t stream) { return DIOPI_RUNTIME(StreamDestroy)(stream_of(stream)); }

int32_t sync_stream(diopiStreamHandle_t stream) { return DIOPI_RUNTIME(StreamSynchronize)(stream_of(stream)); }

void* malloc_device(uint64_t bytes) {
    void* pointer = nullptr;
    if (DIOPI_RUNTIME(Malloc)(&pointer, bytes) == kDone) return pointer;
    static_cast<void>(DIOPI_RUNTIME(GetLastError)());  // told; the next call shall not meet it
    return nullptr;
}

void free_device(void* pointer) { static_cast<void>(DIOPI_RUNTIME(Free)(pointer)); }

int32_t copy_h2d(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return DIOPI_RUNTIME(MemcpyAsync)(dst, src, bytes, DIOPI_RUNTIME(MemcpyHostToDevice), stream_of(stream));
}

int32_t copy_d2h(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return DIOPI_RUNTIME(MemcpyAsync)(dst, src, bytes, DIOPI_RUNTIME(MemcpyDeviceToHost), stream_of(stream));
}

int32_t copy_d2d(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return DIOPI_RUNTIME(MemcpyAsync)(dst, src, bytes, DIOPI_RUNTIME(MemcpyDeviceToDevice), stream_of(stream));
}

int32_t device_count(int32_t* count) { return DIOPI_RUNTIME(GetDeviceCount)(count); }

int32_t set_device(int32_t device) { return DIOPI_RUNTIME(SetDevice)(device); }

int32_t get_device(int32_t* device) { return DIOPI_RUNTIME(GetDevice)(device); }

int32_t memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    const DeviceScope scope(device);
    if (scope.status() != kDone) return scope.status();
    size_t free_size = 0;
    size_t total_size = 0;
    const Status status = DIOPI_RUNTIME(MemGetInfo)(&free_size, &total_size);
    *free_bytes = free_size;
    *total_bytes = total_size;
    return status;
}

int32_t synchronize_device(int32_t device) {
    const DeviceScope scope(device);
    return scope.status() == kDone ? DIOPI_RUNTIME(DeviceSynchronize)() : scope.status();
}

int32_t stream_priority_range(int32_t* least, int32_t* greatest) {
    return DIOPI_RUNTIME(DeviceGetStreamPriorityRange)(least, greatest);
}

int32_t query_stream(diopiStreamHandle_t stream, bool* done) {
    return answer(DIOPI_RUNTIME(StreamQuery)(stream_of(stream)), done);
}

int32_t create_event(diopiEventHandle_t* event, bool timed) {
    return DIOPI_RUNTIME(EventCreateWithFlags)(reinterpret_cast<Event*>(event),
                                               timed ? DIOPI_RUNTIME(EventDefault) : DIOPI_RUNTIME(EventDisableTiming));
}

int32_t destroy_event(diopiEventHandle_t event) { return DIOPI_RUNTIME(EventDestroy)(event_of(event)); }

int32_t record_event(diopiEventHandle_t event, diopiStreamHandle_t stream) {
    return DIOPI_RUNTIME(EventRecord)(event_of(event), stream_of(stream));
}

int32_t wait_event(diopiStreamHandle_t stream, diopiEventHandle_t event) {
    return DIOPI_RUNTIME(StreamWaitEvent)(stream_of(stream), event_of(event), 0);
}

int32_t query_event(diopiEventHandle_t event, bool* done) {
    return answer(DIOPI_RUNTIME(EventQuery)(event_of(event)), done);
}

int32_t sync_event(diopiEventHandle_t event) { return DIOPI_RUNTIME(EventSynchronize)(event_of(event)); }

int32_t elapsed_ms(diopiEventHandle_t start, diopiEventHandle_t end, float* milliseconds) {
    return DIOPI_RUNTIME(EventElapsedTime)(milliseconds, event_of(start), event_of(end));
}

int32_t free_host(void* pointer) { return DIOPI_RUNTIME(FreeHost)(pointer); }

int32_t memset_device(diopiStreamHandle_t stream, void* dst, int32_t value, uint64_t bytes) {
    return DIOPI_RUNTIME(MemsetAsync)(dst, value, bytes, stream_of(stream));
}

int32_t copy_peer(diopiStreamHandle_t stream, void* dst, int32_t dst_device, const void* src, int32_t src_device,
                  uint64_t bytes) {
    return DIOPI_RUNTIME(MemcpyPeerAsync)(dst, dst_device, src, src_device, bytes, stream_of(stream));
}

constexpr diopiDeviceApi_t kDeviceApi = {
    sizeof(diopiDeviceApi_t),
    DIOPI_DEVICE_API_VERSION,
    create_stream,
    destroy_stream,
    sync_stream,
    malloc_device,
    free_device,
    copy_h2d,
    copy_d2h,
    copy_d2d,
    last_device_error,
    device_count,
    set_device,
    get_device,
    device_properties,
    memory_info,
    synchronize_device,
    pointer_device,
    create_stream_with_priority,
    stream_priority_range,
    query_stream,
    create_event,
    destroy_event,
    record_event,
    wait_event,
    query_event,
    sync_event,
    elapsed_ms,
    malloc_host,
    free_host,
    memset_device,
    copy_peer,
    begin_capture,
    end_capture,
    launch_graph,
    destroy_graph,
    DIOPI_WORKS_IN_CALLER,
};

}  // namespace

extern "C" {

const diopiDeviceApi_t* diopiGetDeviceApi(void) { return &kDeviceApi; }

int32_t initLibrary(void) {
    if (diopiRegisterStreamCreateFunc !=
        nullptr) {  // a run time that finds device functions by their names has none of these
        diopiRegisterStreamCreateFunc(create_stream);
        diopiRegisterStreamDestroyFunc(destroy_stream);
        diopiRegisterSynchronizeStreamFunc(sync_stream);
        diopiRegisterDeviceMallocFunc(malloc_device);
        diopiRegisterDevMemFreeFunc(free_device);
        diopiRegisterMemcpyH2DAsyncFunc(copy_h2d);
        diopiRegisterMemcpyD2HAsyncFunc(copy_d2h);
        diopiRegisterMemcpyD2DAsyncFunc(copy_d2d);
        diopiRegisterGetLastErrorFunc(last_device_error);
    }
    int32_t count = 0;
    return device_count(&count);  // starts the chip, so that a bad setting shows here
}

int32_t finalizeLibrary(void) { return kDone; }  // the chip lives as long as the process

}  // extern "C"
