#include <conform_test.h>

#include <cstdlib>
#include <cstring>

#include "litert.hpp"

namespace impl {
namespace hooks {

extern "C" {

void* device_malloc(uint64_t bytes) { return std::malloc(bytes); }

void device_free(void* ptr) { std::free(ptr); }

int32_t device_make_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return diopiSuccess;
}

int32_t device_destroy_stream(diopiStreamHandle_t stream) { return diopiSuccess; }

int32_t device_synchronize_stream(diopiStreamHandle_t stream) { return diopiSuccess; }

int32_t device_memcpy_h2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return diopiSuccess;
}

diopiError_t device_memcpy_d2h_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return diopiSuccess;
}

diopiError_t device_memcpy_d2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return diopiSuccess;
}

diopiError_t initLibrary() {
    std::cout << "initialized\n";
    return diopiSuccess;
}

diopiError_t finalizeLibrary() { return diopiSuccess; }

diopiError_t buildGeneratorState(diopiContextHandle_t ctx, diopiTensorHandle_t out) {
    std::vector<int64_t> shape{808};
    diopiSize_t size{shape.data(), static_cast<int64_t>(shape.size())};
    diopiTensorHandle_t state = nullptr;
    diopiRequireTensor(ctx, &state, &size, nullptr, diopi_dtype_uint8, diopi_host);
    *out = *state;
    return diopiSuccess;
}

}  // extern "C"

}  // namespace hooks
}  // namespace impl
