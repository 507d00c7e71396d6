#include "impl_functions.hpp"
#include "record.hpp"

namespace impl {
namespace declarations {

diopiError_t diopiAddInp(diopiContextHandle_t ctx, diopiTensorHandle_t input, diopiConstTensorHandle_t other,
                         const diopiScalar_t* alpha) {
    const shared::View left = shared::seen("diopiAddInp", "input", input),
                       right = shared::seen("diopiAddInp", "other", other);
    for (int64_t index = 0; index < left.numel(); ++index) {
        left.set(index, left.get(index) + static_cast<double>(alpha->ival) * right.get(index));
    }
    return diopiSuccess;
}

}  // namespace declarations
}  // namespace impl
