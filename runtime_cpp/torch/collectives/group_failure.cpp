// The first error stays.
#include "group_failure.h"

#include "device/async_failure.h"

namespace dipu::collectives {

std::exception_ptr GroupFailure::set(const std::exception_ptr& error, bool tell) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (error_ == nullptr) {
        error_ = error;
        if (tell) {
            set_async_failure(error);
        }
    }
    return error_;
}

std::exception_ptr GroupFailure::error() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return error_;
}

void GroupFailure::rethrow() const {
    if (const std::exception_ptr known = error()) {
        tell_async_failure(known);
        std::rethrow_exception(known);
    }
}

}  // namespace dipu::collectives
