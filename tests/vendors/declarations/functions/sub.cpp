#include "impl_functions.hpp"

namespace impl {
namespace declarations {

diopiError_t diopiSubInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, diopiConstTensorHandle_t other,
                         const diopiScalar_t* alpha) {
    diopiScalar_t negative = *alpha;
    negative.ival = -negative.ival;
    return declarations::diopiAddInp(ctx, input, other, &negative);
}

}  // namespace declarations
}  // namespace impl
