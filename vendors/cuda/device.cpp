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
