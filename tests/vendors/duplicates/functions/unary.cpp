#include <diopi/functions.h>

#include "record.hpp"

namespace impl {
namespace duplicates {

diopiError_t diopiRelu(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::unary("diopiRelu", out, input, [](double x) { return x > 0 ? x : 0; });
}

diopiError_t diopiNeg(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::unary("diopiNeg", out, input, [](double x) { return -x; });
}

diopiError_t diopiCastDtype(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::copy(input, out);
}

diopiError_t diopiCopyInp(diopiContextHandle_t ctx, diopiConstTensorHandle_t src, diopiTensorHandle_t input) {
    return shared::copy(src, input);
}

}  // namespace duplicates
}  // namespace impl
