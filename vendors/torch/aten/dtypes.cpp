// The contract's element types and ATen's.
#include <array>
#include <utility>

#include "aten/call.h"

namespace diopi::aten {
namespace {

constexpr std::array<std::pair<diopiDtype_t, at::ScalarType>, 16> kTypes{{
    {diopi_dtype_int8, at::kChar},
    {diopi_dtype_uint8, at::kByte},
    {diopi_dtype_int16, at::kShort},
    {diopi_dtype_uint16, at::kUInt16},
    {diopi_dtype_int32, at::kInt},
    {diopi_dtype_uint32, at::kUInt32},
    {diopi_dtype_int64, at::kLong},
    {diopi_dtype_uint64, at::kUInt64},
    {diopi_dtype_float16, at::kHalf},
    {diopi_dtype_float32, at::kFloat},
    {diopi_dtype_float64, at::kDouble},
    {diopi_dtype_bool, at::kBool},
    {diopi_dtype_bfloat16, at::kBFloat16},
    {diopi_dtype_complex32, at::kComplexHalf},
    {diopi_dtype_complex64, at::kComplexFloat},
    {diopi_dtype_complex128, at::kComplexDouble},
}};

}  // namespace

at::ScalarType scalar_type(diopiDtype_t dtype) {
    for (const auto& [ours, theirs] : kTypes) {
        if (ours == dtype) return theirs;
    }
    throw Failure(diopiDtypeNotSupported, "ATen has no element type with the number " + std::to_string(dtype));
}

at::ScalarType scalar_type(diopiConstTensorHandle_t handle) {
    diopiDtype_t dtype = diopi_dtype_unsupported;
    check(diopiGetTensorDtype(handle, &dtype), "a tensor gives no dtype");
    return scalar_type(dtype);
}

diopiDtype_t dtype_of(at::ScalarType type) {
    for (const auto& [ours, theirs] : kTypes) {
        if (theirs == type) return ours;
    }
    throw Failure(diopiDtypeNotSupported, std::string("the contract has no element type ") + at::toString(type));
}

}  // namespace diopi::aten
