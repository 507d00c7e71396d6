// A vendor of the first days, on host memory: FORM 1 registers nine functions from initLibrary(), FORM 2 exports eight by
// name, FORM 3 forgets one, FORM 4 needs a function that nobody has, FORM 5 has a record of other headers, FORM 6 of
// another functions.h only, FORM 7 a record that agrees.
#include <diopi/diopi_register.h>
#include <diopi/functions.h>

#include <cstdlib>
#include <cstring>

namespace {

int32_t copy(diopiStreamHandle_t, void* dst, const void* src, uint64_t bytes) {
    std::memcpy(dst, src, bytes);
    return 0;
}

int32_t make_stream(diopiStreamHandle_t* stream) {
    *stream = nullptr;
    return 0;
}

int32_t nothing(diopiStreamHandle_t) { return 0; }

}  // namespace

extern "C" {

#if FORM >= 5
const diopiAbiRecord_t* diopiGetAbiRecord(void) {
    static diopiAbiRecord_t record = {sizeof(diopiAbiRecord_t), DIOPI_VERSION, DIOPI_ABI_RT_HASH, DIOPI_ABI_FUNCTIONS_HASH,
                                      sizeof(diopiSize_t), sizeof(diopiScalar_t), sizeof(diopiError_t), 0};
    if (FORM == 5) record.sizeof_scalar = 24;
    if (FORM == 6) record.functions_hash ^= 1;
    return &record;
}
#endif

#if FORM == 2
void* device_malloc(uint64_t bytes) { return std::malloc(bytes); }
void device_free(void* pointer) { std::free(pointer); }
int32_t device_memcpy_h2d_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) { return copy(s, dst, src, n); }
int32_t device_memcpy_d2h_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) { return copy(s, dst, src, n); }
int32_t device_memcpy_d2d_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) { return copy(s, dst, src, n); }
int32_t device_make_stream(diopiStreamHandle_t* stream) { return make_stream(stream); }
int32_t device_destroy_stream(diopiStreamHandle_t stream) { return nothing(stream); }
int32_t device_synchronize_stream(diopiStreamHandle_t stream) { return nothing(stream); }
const char* diopiGetLastErrorString(void) { return "no words"; }
#else
#if FORM == 4
int nobody_has_this(void);
#endif
int32_t initLibrary(void) {
    diopiRegisterDeviceMallocFunc([](uint64_t bytes) { return std::malloc(bytes); });
    diopiRegisterDevMemFreeFunc(std::free);
    diopiRegisterMemcpyH2DAsyncFunc(copy);
    diopiRegisterMemcpyD2HAsyncFunc(copy);
#if FORM != 3
    diopiRegisterMemcpyD2DAsyncFunc(copy);
#endif
    diopiRegisterStreamCreateFunc(make_stream);
    diopiRegisterStreamDestroyFunc(nothing);
    diopiRegisterSynchronizeStreamFunc(nothing);
    diopiRegisterGetLastErrorFunc([] { return "no words"; });
#if FORM == 4
    return nobody_has_this();
#else
    return 0;
#endif
}
#endif
}
