// The table between torch's dtypes and the contract's.
#include "handles.h"

#include <c10/util/Exception.h>

#include <utility>

namespace dipu {
namespace {

constexpr std::pair<c10::ScalarType, diopiDtype_t> kDtypes[] = {
    {c10::kChar, diopi_dtype_int8},           {c10::kByte, diopi_dtype_uint8},
    {c10::kShort, diopi_dtype_int16},         {c10::kUInt16, diopi_dtype_uint16},
    {c10::kInt, diopi_dtype_int32},           {c10::kUInt32, diopi_dtype_uint32},
    {c10::kLong, diopi_dtype_int64},          {c10::kUInt64, diopi_dtype_uint64},
    {c10::kHalf, diopi_dtype_float16},        {c10::kFloat, diopi_dtype_float32},
    {c10::kDouble, diopi_dtype_float64},      {c10::kBool, diopi_dtype_bool},
    {c10::kBFloat16, diopi_dtype_bfloat16},   {c10::kComplexHalf, diopi_dtype_complex32},
    {c10::kComplexFloat, diopi_dtype_complex64}, {c10::kComplexDouble, diopi_dtype_complex128},
};

}  // namespace

diopiDtype_t diopi_dtype(c10::ScalarType dtype) {
    for (const auto& [torch_dtype, vendor_dtype] : kDtypes) {
        if (torch_dtype == dtype) {
            return vendor_dtype;
        }
    }
    return diopi_dtype_unsupported;
}

c10::ScalarType scalar_type(diopiDtype_t dtype) {
    for (const auto& [torch_dtype, vendor_dtype] : kDtypes) {
        if (vendor_dtype == dtype) {
            return torch_dtype;
        }
    }
    TORCH_CHECK(false, "torch has no dtype for the vendor's dtype number ", static_cast<int>(dtype));
}

}  // namespace dipu
