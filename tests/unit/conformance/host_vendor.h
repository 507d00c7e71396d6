// The nine classic functions over plain host memory, for libraries that only the suite's own tests load.
#pragma once

#include <diopi/diopi_register.h>

#include <cstdlib>
#include <cstring>

namespace host_vendor {

inline int32_t create_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return 0;
}
inline int32_t accept_stream(diopiStreamHandle_t) { return 0; }
inline void* allocate(uint64_t bytes) { return std::malloc(bytes ? bytes : 1); }
inline void release(void* pointer) { std::free(pointer); }
inline int32_t copy(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return 0;
}
inline const char* last_error() { return "the host vendor failed"; }

inline int32_t register_all() {
    diopiRegisterStreamCreateFunc(create_stream);
    diopiRegisterStreamDestroyFunc(accept_stream);
    diopiRegisterSynchronizeStreamFunc(accept_stream);
    diopiRegisterDeviceMallocFunc(allocate);
    diopiRegisterDevMemFreeFunc(release);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
    diopiRegisterMemcpyD2DAsyncFunc(copy);
    diopiRegisterGetLastErrorFunc(last_error);
    return 0;
}

}  // namespace host_vendor

extern "C" int32_t initLibrary() { return host_vendor::register_all(); }
extern "C" int32_t finalizeLibrary() { return 0; }
