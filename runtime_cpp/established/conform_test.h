// Compatibility: the device functions that sources of 2024 define with C linkage, and that run times find by their names.
// Some of these sources return a diopiError_t from the others and some an int32_t, so only these are declared.
#ifndef DIOPI_ESTABLISHED_CONFORM_TEST_H_
#define DIOPI_ESTABLISHED_CONFORM_TEST_H_

#include <diopi/diopirt.h>

#if defined(__cplusplus)
extern "C" {
#endif

extern DIOPI_API void* device_malloc(uint64_t bytes);
extern DIOPI_API void device_free(void* ptr);
extern DIOPI_API diopiError_t buildGeneratorState(diopiContextHandle_t ctx, diopiTensorHandle_t out);

#if defined(__cplusplus)
}
#endif

#endif  // DIOPI_ESTABLISHED_CONFORM_TEST_H_
