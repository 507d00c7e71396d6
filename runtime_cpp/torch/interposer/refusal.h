// Which statuses of a vendor's function ask for the fallback, and are no failures.
#pragma once

#include <diopi/diopirt.h>

#include "export.h"

namespace dipu {

DIPU_API bool asks_for_fallback(diopiError_t status) noexcept;

}  // namespace dipu
