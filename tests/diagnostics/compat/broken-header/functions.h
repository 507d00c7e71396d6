#include <chip_types.h>

extern "C" diopiError_t diopiShrink(diopiContextHandle_t ctx, chip_bool out);
