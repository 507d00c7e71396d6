// Keeps one failure for the next caller.
#include "async_failure.h"

#include <mutex>
#include <utility>

namespace dipu {

std::atomic<bool> has_async_failure = false;

namespace {

struct Failure {
    std::mutex mutex;
    std::exception_ptr error;
};

Failure& failure() {
    static Failure* const kept = new Failure;  // threads outlive static objects
    return *kept;
}

}  // namespace

void set_async_failure(const std::exception_ptr& error) {
    const std::lock_guard<std::mutex> lock(failure().mutex);
    if (failure().error == nullptr) {
        failure().error = error;
        has_async_failure = true;
    }
}

void tell_async_failure(const std::exception_ptr& error) {
    const std::lock_guard<std::mutex> lock(failure().mutex);
    if (failure().error == error) {
        failure().error = nullptr;
        has_async_failure = false;
    }
}

void raise_async_failure() {
    std::exception_ptr error;
    {
        const std::lock_guard<std::mutex> lock(failure().mutex);
        error = std::exchange(failure().error, nullptr);
        has_async_failure = false;
    }
    if (error != nullptr) {
        std::rethrow_exception(error);
    }
}

}  // namespace dipu
