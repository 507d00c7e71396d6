// The contract's element types and ATen's.
#include <diopi/dtypes.h>

#include <utility>

#include "aten/call.h"

namespace diopi::aten {
namespace {

constexpr std::pair<diopiDtype_t, at::ScalarType> kTypes[] = {
#define DIOPI_PAIR(name, type) {diopi_dtype_##name, at::ScalarType::type},
    DIOPI_FOR_EACH_TORCH_DTYPE(DIOPI_PAIR)
#undef DIOPI_PAIR
};

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
