// What failed on a device after the call that launched it had returned: told by the next call that waits for the device.
#pragma once

#include <atomic>
#include <exception>

#include "export.h"

namespace dipu {

DIPU_API extern std::atomic<bool> has_async_failure;

// From any thread. Of failures that nobody was told yet, the first is kept.
void set_async_failure(const std::exception_ptr& error);

// That one is known to its user.
void tell_async_failure(const std::exception_ptr& error);

void raise_async_failure();

// Throws the failure, once.
inline void check_async_failure() {
    if (has_async_failure.load(std::memory_order_relaxed)) [[unlikely]] {
        raise_async_failure();
    }
}

}  // namespace dipu
