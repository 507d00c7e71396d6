// Compatibility: the device functions that sources of 2024 define and that run times find by their names. The functions
// that both forms have, initLibrary() and finalizeLibrary(), give a diopiError_t here and an int32_t in diopi_register.h.
#ifndef DIOPI_ESTABLISHED_CONFORM_TEST_H_
#define DIOPI_ESTABLISHED_CONFORM_TEST_H_

#include <diopi/diopirt.h>

#if defined(__cplusplus)
extern "C" {
#endif

extern DIOPI_API void* device_malloc(uint64_t bytes);
extern DIOPI_API void device_free(void* ptr);
extern DIOPI_API diopiError_t device_memcpy_h2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes);
extern DIOPI_API diopiError_t device_memcpy_d2h_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes);
extern DIOPI_API diopiError_t device_memcpy_d2d_async(diopiStreamHandle_t stream, void* dst, const void* src, uint64_t bytes);
extern DIOPI_API diopiError_t device_make_stream(diopiStreamHandle_t* stream);
extern DIOPI_API diopiError_t device_destroy_stream(diopiStreamHandle_t stream);
extern DIOPI_API diopiError_t device_synchronize_stream(diopiStreamHandle_t stream);
extern DIOPI_API diopiError_t initLibrary(void);
extern DIOPI_API diopiError_t finalizeLibrary(void);
extern DIOPI_API diopiError_t buildGeneratorState(diopiContextHandle_t ctx, diopiTensorHandle_t out);

#if defined(__cplusplus)
}
#endif

#endif  // DIOPI_ESTABLISHED_CONFORM_TEST_H_
