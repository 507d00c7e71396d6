// The rare direction between the contract's dtypes and torch's.
#include "handles.h"

#include <c10/util/Exception.h>

namespace dipu {

c10::ScalarType scalar_type(diopiDtype_t dtype) {
    switch (dtype) {
#define DIOPI_SCALAR_TYPE(name, type) \
    case diopi_dtype_##name: return c10::ScalarType::type;
        DIOPI_FOR_EACH_TORCH_DTYPE(DIOPI_SCALAR_TYPE)
#undef DIOPI_SCALAR_TYPE
        default: break;
    }
    TORCH_CHECK(false, "torch has no dtype for the vendor's dtype number ", static_cast<int>(dtype));
}

}  // namespace dipu
