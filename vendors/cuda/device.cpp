// The device contract over CUDA's runtime.
#include <cuda_runtime.h>
#include <diopi/device.h>
#include <diopi/functions.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "core/error.h"

#define DIOPI_RUNTIME(name) cuda##name

namespace {

const char* last_device_error() { return cudaGetErrorString(cudaPeekAtLastError()); }

int32_t device_properties(int32_t device, diopiDeviceProperties_t* properties) {
    cudaDeviceProp chip = {};
    const cudaError_t status = cudaGetDeviceProperties(&chip, device);
    if (status != cudaSuccess) return status;
    const size_t length = std::min(std::strlen(chip.name), sizeof properties->name - 1);
    std::memcpy(properties->name, chip.name, length);
    properties->name[length] = '\0';
    properties->total_memory = chip.totalGlobalMem;
    properties->multi_processor_count = chip.multiProcessorCount;
    properties->major = chip.major;
    properties->minor = chip.minor;
    return cudaSuccess;
}

int32_t pointer_device(const void* pointer, int32_t* device) {
    cudaPointerAttributes attributes = {};
    const cudaError_t status = cudaPointerGetAttributes(&attributes, pointer);
    *device = attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
    return status;
}

int32_t malloc_host(void** pointer, uint64_t bytes) { return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault); }

int32_t begin_capture(diopiStreamHandle_t stream) {
    // Functions may ask for memory meanwhile, which the allocator may have to take from the device.
    return cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeRelaxed);
}

int32_t end_capture(diopiStreamHandle_t stream, diopiGraphHandle_t* graph) {
    cudaGraph_t recorded = nullptr;
    *graph = nullptr;
    cudaError_t status = cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &recorded);
    if (status == cudaSuccess) status = cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(graph), recorded, 0);
    if (recorded != nullptr) static_cast<void>(cudaGraphDestroy(recorded));
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // told; the next call shall not meet it
    return status;
}

int32_t launch_graph(diopiGraphHandle_t graph, diopiStreamHandle_t stream) {
    return cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), static_cast<cudaStream_t>(stream));
}

int32_t destroy_graph(diopiGraphHandle_t graph) { return cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

}  // namespace

#include "device/table.h"

extern "C" {

const char* diopiGetVendorName(void) { return "cuda"; }

const char* diopiGetImplVersion(void) { return "0.1.0"; }

// The kernels say what they were doing, CUDA says what happened.
const char* diopiGetLastErrorString(void) {
    thread_local char message[2 * diopi::kernels::kMessageLength];
    const char* kernel_message = diopiKernelsLastError();
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return kernel_message;
    const char* separator = *kernel_message == '\0' ? "" : ": ";
    std::snprintf(message, sizeof message, "%s%s%s", kernel_message, separator, cudaGetErrorString(error));
    return message;
}

}  // extern "C"
