#include <diopi/functions.h>

#include <cmath>

#include "record.hpp"

namespace impl {
namespace linkage {

extern "C" {

diopiError_t diopiNeg(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::unary("diopiNeg", out, input, [](double x) { return -x; });
}

}  // extern "C"

diopiError_t diopiAbs(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::unary("diopiAbs", out, input, [](double x) { return std::fabs(x); });
}

diopiError_t diopiCastDtype(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::copy(input, out);
}

diopiError_t diopiCopyInp(diopiContextHandle_t ctx, diopiConstTensorHandle_t src, diopiTensorHandle_t input) {
    return shared::copy(src, input);
}

}  // namespace linkage
}  // namespace impl
