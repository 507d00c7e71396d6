// The boundary to C: what a vendor's function throws ends here, and becomes a status.
#pragma once

#include <diopi/diopirt.h>

#include <cstdio>
#include <exception>

namespace diopi::adaptor {

// The status of the exception in flight; its text goes to the standard error, since the vendor's last error is another one.
[[gnu::cold, gnu::noinline]] inline diopiError_t thrown(const char* function) noexcept {
    try {
        throw;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "diopi adaptor: %s threw an exception: %s\n", function, error.what());
    } catch (...) {
        std::fprintf(stderr, "diopi adaptor: %s threw an exception\n", function);
    }
    return diopiErrorOccurred;
}

template <typename Function>
[[gnu::always_inline]] inline diopiError_t guarded(const char* name, const Function& function) noexcept {
    try {
        return function();
    } catch (...) {
        return thrown(name);
    }
}

}  // namespace diopi::adaptor
