// Droplet's side of the device contract: the nine classic functions and the full device table, over its tang* runtime.
#include <diopi/device.h>
#include <diopi/functions.h>

#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "runtime/tang_runtime.h"

namespace {

tangStream_t stream_of(diopiStreamHandle_t stream) { return static_cast<tangStream_t>(stream); }
tangEvent_t event_of(diopiEventHandle_t event) { return static_cast<tangEvent_t>(event); }

// Calls that name a device work on it and leave the thread's current device as it was.
class DeviceScope {
public:
    explicit DeviceScope(int32_t device) : status_(tangGetDevice(&previous_)) {
        if (status_ == tangSuccess) status_ = tangSetDevice(device);
    }
    ~DeviceScope() {
        if (status_ == tangSuccess) tangSetDevice(previous_);
    }
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;
    tangError_t status() const { return status_; }

private:
    int32_t previous_ = 0;
    tangError_t status_;
};

// "Not ready" is an answer, not an error.
int32_t answer(tangError_t status, bool* done) {
    *done = status == tangSuccess;
    return status == tangErrorNotReady ? tangSuccess : status;
}

int32_t create_stream(diopiStreamHandle_t* stream) { return tangStreamCreate(reinterpret_cast<tangStream_t*>(stream)); }

int32_t create_stream_with_priority(diopiStreamHandle_t* stream, int32_t priority) {
    return tangStreamCreateWithPriority(reinterpret_cast<tangStream_t*>(stream), 0, priority);
}

int32_t destroy_stream(diopiStreamHandle_t stream) { return tangStreamDestroy(stream_of(stream)); }

int32_t sync_stream(diopiStreamHandle_t stream) { return tangStreamSynchronize(stream_of(stream)); }

void* malloc_device(uint64_t bytes) {
    void* pointer = nullptr;
    return tangMalloc(&pointer, bytes) == tangSuccess ? pointer : nullptr;
}

void free_device(void* pointer) { static_cast<void>(tangFree(pointer)); }

int32_t copy_h2d(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return tangMemcpyAsync(dst, src, bytes, tangMemcpyHostToDevice, stream_of(stream));
}

int32_t copy_d2h(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return tangMemcpyAsync(dst, src, bytes, tangMemcpyDeviceToHost, stream_of(stream));
}

int32_t copy_d2d(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    return tangMemcpyAsync(dst, src, bytes, tangMemcpyDeviceToDevice, stream_of(stream));
}

const char* last_device_error() { return tangGetLastErrorMessage(); }

int32_t device_count(int32_t* count) { return tangGetDeviceCount(count); }

int32_t set_device(int32_t device) { return tangSetDevice(device); }

int32_t get_device(int32_t* device) { return tangGetDevice(device); }

int32_t device_properties(int32_t device, diopiDeviceProperties_t* properties) {
    tangDeviceProperties_t chip = {};
    const tangError_t status = tangGetDeviceProperties(&chip, device);
    if (status != tangSuccess) return status;
    static_assert(sizeof properties->name == sizeof chip.name, "the names are of one length");
    std::memcpy(properties->name, chip.name, sizeof chip.name);
    properties->total_memory = chip.total_memory;
    properties->multi_processor_count = chip.multi_processor_count;
    properties->major = chip.major;
    properties->minor = chip.minor;
    return tangSuccess;
}

int32_t memory_info(int32_t device, uint64_t* free_bytes, uint64_t* total_bytes) {
    const DeviceScope scope(device);
    if (scope.status() != tangSuccess) return scope.status();
    size_t free_size = 0;
    size_t total_size = 0;
    const tangError_t status = tangMemGetInfo(&free_size, &total_size);
    *free_bytes = free_size;
    *total_bytes = total_size;
    return status;
}

int32_t synchronize_device(int32_t device) {
    const DeviceScope scope(device);
    return scope.status() == tangSuccess ? tangDeviceSynchronize() : scope.status();
}

int32_t pointer_device(const void* pointer, int32_t* device) {
    tangPointerAttributes_t attributes = {};
    const tangError_t status = tangPointerGetAttributes(&attributes, pointer);
    *device = attributes.type == tangMemoryTypeDevice ? attributes.device : -1;
    return status;
}

int32_t stream_priority_range(int32_t* least, int32_t* greatest) { return tangStreamGetPriorityRange(least, greatest); }

int32_t query_stream(diopiStreamHandle_t stream, bool* done) { return answer(tangStreamQuery(stream_of(stream)), done); }

int32_t create_event(diopiEventHandle_t* event, bool timed) {
    return tangEventCreate(reinterpret_cast<tangEvent_t*>(event), timed ? tangEventDefault : tangEventDisableTiming);
}

int32_t destroy_event(diopiEventHandle_t event) { return tangEventDestroy(event_of(event)); }

int32_t record_event(diopiEventHandle_t event, diopiStreamHandle_t stream) {
    return tangEventRecord(event_of(event), stream_of(stream));
}

int32_t wait_event(diopiStreamHandle_t stream, diopiEventHandle_t event) {
    return tangStreamWaitEvent(stream_of(stream), event_of(event), 0);
}

int32_t query_event(diopiEventHandle_t event, bool* done) { return answer(tangEventQuery(event_of(event)), done); }

int32_t sync_event(diopiEventHandle_t event) { return tangEventSynchronize(event_of(event)); }

int32_t elapsed_ms(diopiEventHandle_t start, diopiEventHandle_t end, float* milliseconds) {
    return tangEventElapsedTime(milliseconds, event_of(start), event_of(end));
}

int32_t malloc_host(void** pointer, uint64_t bytes) { return tangHostAlloc(pointer, bytes); }

int32_t free_host(void* pointer) { return tangFreeHost(pointer); }

int32_t memset_device(diopiStreamHandle_t stream, void* dst, int32_t value, uint64_t bytes) {
    return tangMemsetAsync(dst, value, bytes, stream_of(stream));
}

int32_t copy_peer(diopiStreamHandle_t stream, void* dst, int32_t dst_device, const void* src, int32_t src_device,
                  uint64_t bytes) {
    return tangMemcpyPeerAsync(dst, dst_device, src, src_device, bytes, stream_of(stream));
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
};

}  // namespace

extern "C" {

const diopiDeviceApi_t* diopiGetDeviceApi(void) { return &kDeviceApi; }

int32_t initLibrary(void) {
    diopiRegisterStreamCreateFunc(create_stream);
    diopiRegisterStreamDestroyFunc(destroy_stream);
    diopiRegisterSynchronizeStreamFunc(sync_stream);
    diopiRegisterDeviceMallocFunc(malloc_device);
    diopiRegisterDevMemFreeFunc(free_device);
    diopiRegisterMemcpyH2DAsyncFunc(copy_h2d);
    diopiRegisterMemcpyD2HAsyncFunc(copy_d2h);
    diopiRegisterMemcpyD2DAsyncFunc(copy_d2d);
    diopiRegisterGetLastErrorFunc(last_device_error);
    int32_t count = 0;
    return tangGetDeviceCount(&count);  // starts the chip, so that a bad setting shows here
}

int32_t finalizeLibrary(void) { return tangSuccess; }  // the chip lives as long as the process

const char* diopiGetVendorName(void) { return "droplet"; }

const char* diopiGetImplVersion(void) { return "0.1.0"; }

// The kernels say what they were doing, the chip says what happened to it.
const char* diopiGetLastErrorString(void) {
    thread_local char message[2 * diopi::kernels::kMessageLength];
    const char* kernel_message = diopiKernelsLastError();
    if (tangGetLastError() == tangSuccess) return kernel_message;
    const char* separator = *kernel_message == '\0' ? "" : ": ";
    std::snprintf(message, sizeof message, "%s%s%s", kernel_message, separator, tangGetLastErrorMessage());
    return message;
}

}  // extern "C"
