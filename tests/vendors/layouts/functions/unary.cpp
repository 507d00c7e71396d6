#include <diopi/functions.h>

#include <cmath>

#include "record.hpp"

namespace impl {
namespace layouts {

#define UNARY(name, expression)                                                                            \
    diopiError_t name(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) { \
        return shared::unary(#name, out, input, [](double x) { return expression; });                      \
    }

UNARY(diopiRelu, x > 0 ? x : 0)
UNARY(diopiNeg, -x)
UNARY(diopiAbs, std::fabs(x))

diopiError_t diopiReluInp(diopiContextHandle_t ctx, diopiTensorHandle_t input) {
    const shared::View view = shared::seen("diopiReluInp", "input", input);
    for (int64_t index = 0; index < view.numel(); ++index) view.set(index, view.get(index) > 0 ? view.get(index) : 0);
    return diopiSuccess;
}

diopiError_t diopiAdd(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    const shared::View right = shared::seen("diopiAdd", "other", other);
    int64_t index = 0;
    return shared::unary("diopiAdd", out, input, [&](double x) { return x + right.get(index++); });
}

diopiError_t diopiCastDtype(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return shared::copy(input, out);
}

diopiError_t diopiCopyInp(diopiContextHandle_t ctx, diopiConstTensorHandle_t src, diopiTensorHandle_t input) {
    return shared::copy(src, input);
}

}  // namespace layouts
}  // namespace impl
