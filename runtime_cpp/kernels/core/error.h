// How a kernel fails: fail() throws inside, guarded() turns it into a status and a last error message at the C
// boundary.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <type_traits>

namespace diopi::kernels {

constexpr int kMessageLength = 512;

// The message of the calling thread's last failure; what diopiKernelsLastError() returns.
char* last_error_buffer() noexcept;

// An int64_t is printed by %lld, whatever type it is an alias of.
template <class T>
auto printable(T value) {
    if constexpr (std::is_same_v<T, int64_t>)
        return static_cast<long long>(value);
    else
        return value;
}

template <class... Args>
void set_error(const char* format, Args... args) noexcept {
    if constexpr (sizeof...(Args) == 0) {
        snprintf(last_error_buffer(), kMessageLength, "%s", format);
    } else {
        snprintf(last_error_buffer(), kMessageLength, format, printable(args)...);
    }
}

// The message is in last_error_buffer() already: the exception only carries the status out.
class Failure : public std::exception {
public:
    explicit Failure(diopiError_t status) : status_(status) {}
    diopiError_t status() const noexcept { return status_; }
    const char* what() const noexcept override { return last_error_buffer(); }

private:
    diopiError_t status_;
};

template <class... Args>
[[noreturn]] void fail(diopiError_t status, const char* format, Args... args) {
    set_error(format, args...);
    throw Failure(status);
}

// e.g. require(a.ndim == 2, "expected a matrix, got %d dimensions", a.ndim);
template <class... Args>
void require(bool condition, const char* format, Args... args) {
    if (!condition) fail(diopiErrorOccurred, format, args...);
}

// For what the kernels do not take and the framework's own operator does, e.g. tensors of very many dimensions.
template <class... Args>
void require_or_fall_back(bool condition, const char* format, Args... args) {
    if (!condition) fail(diopiForceFallbackToCPU, format, args...);
}

// For statuses of diopirt.h and of the launcher.
inline void check(diopiError_t status, const char* what = "a runtime call failed") {
    if (status != diopiSuccess) fail(status, what);
}

// Why the thread's last launch failed, if the launcher says so: a literal.
inline thread_local const char* launch_reason = "";

inline void check_launch(diopiError_t status) {
    const char* const colon = *launch_reason == 0 ? "" : ": ";
    if (status != diopiSuccess) fail(status, "the device did not take a launch%s%s", colon, launch_reason);
}

// For a kernel that calls another one, which has left its message.
inline void passed_on(diopiError_t status) {
    if (status != diopiSuccess) throw Failure(status);
}

// Runs `body` and gives its status: nothing may cross the C boundary as an exception.
template <class Body>
diopiError_t guarded(Body&& body) noexcept {
    try {
        body();
        return diopiSuccess;
    } catch (const Failure& failure) {
        return failure.status();
    } catch (const std::exception& error) {
        set_error("%s", error.what());
        return diopiErrorOccurred;
    }
}

}  // namespace diopi::kernels

extern "C" const char* diopiKernelsLastError(void);
