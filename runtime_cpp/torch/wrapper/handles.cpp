// The rare direction between the contract's dtypes and torch's.
#include "handles.h"

#include <c10/util/Exception.h>

namespace dipu {

c10::ScalarType scalar_type(diopiDtype_t dtype) {
    for (const auto& [torch_dtype, vendor_dtype] : kDtypes) {
        if (vendor_dtype == dtype) {
            return torch_dtype;
        }
    }
    TORCH_CHECK(false, "torch has no dtype for the vendor's dtype number ", static_cast<int>(dtype));
}

}  // namespace dipu
