/* Adds two tensors on the chip, by the C functions of an installed SDK. */
#include <diopi/functions.h>
#include <diopi/standalone.h>
#include <stdio.h>

static diopiTensorHandle_t tensor(const float* values) {
    const int64_t size = 3;
    diopiTensorHandle_t made = standalone_tensor_create(&size, NULL, 1, 0, size, diopi_dtype_float32, diopi_device);
    if (made != NULL && values != NULL) standalone_tensor_write(made, values, 3 * sizeof *values);
    return made;
}

int main(void) {
    const float x[] = {1, 2, 3}, y[] = {10, 20, 30};
    float sum[3];
    if (standalone_load("libdiopi_impl.so") != 0) {
        fputs(standalone_last_error(), stderr);
        return 2;
    }
    diopiContextHandle_t ctx = standalone_context_create();
    diopiTensorHandle_t out = tensor(NULL);
    const diopiScalar_t alpha = {.stype = diopi_dtype_float64, .fval = 2};
    if (diopiAdd(ctx, out, tensor(x), tensor(y), &alpha) != diopiSuccess) return 3;
    if (standalone_tensor_read(out, sum, sizeof sum) != 0) return 4;
    printf("%s: %g %g %g\n", diopiGetVendorName(), sum[0], sum[1], sum[2]);
    return 0;
}
