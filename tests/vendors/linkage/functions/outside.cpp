#include <diopi/functions.h>

#include "record.hpp"

// No extern "C": the header declares it.
diopiError_t diopiRelu(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::unary("diopiRelu", out, input, [](double x) { return x > 0 ? x : 0; });
}
