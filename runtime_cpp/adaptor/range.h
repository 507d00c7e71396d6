// Finds integers that a cast would change, where DIOPI_ADAPTOR_CHECK_RANGE=1 asks for it.
//
// A chip without int64 computes in int32, and silently wrong where a value needs more. The check reads every integer input
// of a narrowing cast on the host before the call, so it is for finding mistakes, not for production.
#pragma once

#include <diopi/diopirt.h>

namespace diopi::adaptor {

// Whether the check is wanted; the environment is read once.
bool checking_range() noexcept;

// diopiErrorOccurred, and a line on standard error, if an element of an integer tensor has no equal in `target`.
diopiError_t check_range(diopiContextHandle_t ctx, const char* function, const char* parameter,
                         diopiConstTensorHandle_t tensor, diopiDtype_t target) noexcept;

}  // namespace diopi::adaptor
