#include <diopi/diopirt.h>

DIOPI_API diopiError_t diopiFold(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input);

extern "C" {
diopiError_t diopiShrink(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                         const diopiScalar_t* lambd, int64_t times, int64_t offset);
}
