// The host as a device: its memory, and streams that are the calling thread.
#include <diopi/diopi_register.h>
#include <diopi/functions.h>

#include <cstdlib>
#include <cstring>

#include "aten/guarded.h"

namespace {

// What PyTorch aligns its own tensors to; its vectorized loops are fastest there.
constexpr size_t kAlignment = 64;

int32_t create_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return 0;
}

int32_t destroy_stream(diopiStreamHandle_t) { return 0; }

int32_t sync_stream(diopiStreamHandle_t) { return 0; }

void* allocate(uint64_t bytes) {
    const uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return std::aligned_alloc(kAlignment, whole == 0 ? kAlignment : whole);
}

void release(void* pointer) { std::free(pointer); }

int32_t copy(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    std::memmove(dst, src, bytes);
    return 0;
}

const char* last_error() { return diopi::aten::last_error(); }

}  // namespace

extern "C" {

int32_t initLibrary(void) {
    if (diopiRegisterStreamCreateFunc == nullptr) return 0;  // this run time finds device functions by their names
    diopiRegisterStreamCreateFunc(create_stream);
    diopiRegisterStreamDestroyFunc(destroy_stream);
    diopiRegisterSynchronizeStreamFunc(sync_stream);
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(release);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterMemcpyD2DAsyncFunc(copy);
    diopiRegisterGetLastErrorFunc(last_error);
    return 0;
}

int32_t finalizeLibrary(void) { return 0; }

const char* diopiGetVendorName(void) { return "torch"; }

const char* diopiGetImplVersion(void) { return "0.1.0"; }

const char* diopiGetLastErrorString(void) { return diopi::aten::last_error(); }

}  // extern "C"
