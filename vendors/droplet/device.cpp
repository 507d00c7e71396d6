// Droplet's side of the device contract, over its tang* runtime.
#include <diopi/device.h>
#include <diopi/functions.h>

#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "runtime/tang_runtime.h"

#define DIOPI_RUNTIME(name) tang##name
#define DIOPI_WORKS_IN_CALLER works_in_caller

namespace {

const char* last_device_error() { return tangGetLastErrorMessage(); }

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

int32_t pointer_device(const void* pointer, int32_t* device) {
    tangPointerAttributes_t attributes = {};
    const tangError_t status = tangPointerGetAttributes(&attributes, pointer);
    *device = attributes.type == tangMemoryTypeDevice ? attributes.device : -1;
    return status;
}

int32_t malloc_host(void** pointer, uint64_t bytes) { return tangHostAlloc(pointer, bytes); }

int32_t begin_capture(diopiStreamHandle_t stream) { return tangStreamBeginCapture(static_cast<tangStream_t>(stream)); }

int32_t end_capture(diopiStreamHandle_t stream, diopiGraphHandle_t* graph) {
    return tangStreamEndCapture(static_cast<tangStream_t>(stream), reinterpret_cast<tangGraph_t*>(graph));
}

int32_t launch_graph(diopiGraphHandle_t graph, diopiStreamHandle_t stream) {
    return tangGraphLaunch(static_cast<tangGraph_t>(graph), static_cast<tangStream_t>(stream));
}

int32_t destroy_graph(diopiGraphHandle_t graph) { return tangGraphDestroy(static_cast<tangGraph_t>(graph)); }

int32_t works_in_caller(bool* works) {
    int32_t async = 0;
    const tangError_t status = tangIsAsync(&async);
    *works = async == 0;
    return status;
}

}  // namespace

#include "device/table.h"

extern "C" {

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
