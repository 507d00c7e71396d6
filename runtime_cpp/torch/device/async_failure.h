// What failed on a device after the call that launched it had returned: told by the next call that waits for the device.
#pragma once

#include <atomic>
#include <exception>
#include <functional>

#include "export.h"

namespace dipu {

// Whether there is a failure, or somebody who has to be asked for one.
DIPU_API extern std::atomic<bool> may_have_async_failure;

// `look` reports failures by set_async_failure; it is asked whenever somebody has waited for a device, from any thread.
int watch_async_failures(std::function<void()> look);
void stop_watching(int watch);  // it is not asked any more when this returns

// From any thread. Of failures that nobody was told yet, the first is kept.
void set_async_failure(const std::exception_ptr& error);

// That one is known to its user.
void tell_async_failure(const std::exception_ptr& error);

void raise_async_failure();

// Throws the failure, once.
inline void check_async_failure() {
    if (may_have_async_failure.load(std::memory_order_relaxed)) [[unlikely]] {
        raise_async_failure();
    }
}

}  // namespace dipu
