// As an established header is: C++ that asks nobody for bool.
#include "diopirt.h"

#if defined(__cplusplus)
extern "C" {
#endif

DIOPI_API diopiError_t diopiShrink(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                   const diopiScalar_t* lambd, int64_t times, int64_t offset);
DIOPI_API diopiError_t diopiShrinkInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, const diopiScalar_t* lambd);
DIOPI_API diopiError_t diopiFolds(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input);

#if defined(__cplusplus)
}
#endif
