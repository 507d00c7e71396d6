// A vendor of the first days, on host memory: FORM 1 registers nine functions from initLibrary(), FORM 2 exports eight by
// name, FORM 3 forgets one, FORM 4 needs a function that nobody has, FORM 5 and later have a record: of another struct
// (5), another functions.h (6), the same headers (7), another enum (8), another diopi_register.h (9), a header that
// libdiopirt.so does not know (10), an older record (11), another functions_mmcv.h (12).
// All but the last have no function of functions_mmcv.h, and so no entry for it.
#include <diopi/abi.h>

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
// What would stand in the record of a library that was built against headers with one difference.
constexpr diopiAbiEntry_t kEntries[] = {
#if FORM == 5
    {diopiAbiSize, "diopiScalar_t", 24},
#elif FORM == 6
    {diopiAbiDeclarations, "functions.h", DIOPI_ABI_FUNCTIONS_HASH ^ 1},
#elif FORM == 8
    {diopiAbiValues, "diopiDtype_t", 1},
#elif FORM == 9
    {diopiAbiDeclarations, "diopi_register.h", DIOPI_ABI_REGISTER_HASH ^ 1},
#elif FORM == 10
    {diopiAbiDeclarations, "functions_of_another_day.h", 1},
#elif FORM == 12
    {diopiAbiDeclarations, "functions_mmcv.h", DIOPI_ABI_FUNCTIONS_MMCV_HASH ^ 1},
#endif
    DIOPI_ABI_COMMON(DIOPI_ABI_ENTRY) DIOPI_ABI_FUNCTIONS(DIOPI_ABI_ENTRY)};

const diopiAbiRecord_t* diopiGetAbiRecord(void) {
    static diopiAbiRecord_t record = DIOPI_ABI_RECORD(kEntries);
    if (FORM == 11) record.size = 40;
    return &record;
}
#endif

#if FORM == 2
void* device_malloc(uint64_t bytes) { return std::malloc(bytes); }
void device_free(void* pointer) { std::free(pointer); }
int32_t device_memcpy_h2d_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) {
    return copy(s, dst, src, n);
}
int32_t device_memcpy_d2h_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) {
    return copy(s, dst, src, n);
}
int32_t device_memcpy_d2d_async(diopiStreamHandle_t s, void* dst, const void* src, uint64_t n) {
    return copy(s, dst, src, n);
}
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
