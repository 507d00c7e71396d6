// What conversions cost, for a vendor who wants to know: told where DIOPI_ADAPTOR_TRACE is set, in words and in totals.
//
//   DIOPI_ADAPTOR_TRACE=1        each conversion on standard error, and the totals when the process ends
//   DIOPI_ADAPTOR_TRACE=totals   the totals alone
//   DIOPI_ADAPTOR_TRACE=FILE     both, added to the end of a file
#pragma once

#include <diopi/diopirt.h>

namespace diopi::adaptor {

// Whether tracing is on; the environment is read once.
bool tracing() noexcept;

// Tells one conversion: `from` was written to `to` for a parameter of a function.
void trace(const char* function, const char* parameter, diopiConstTensorHandle_t from,
           diopiConstTensorHandle_t to) noexcept;

}  // namespace diopi::adaptor
