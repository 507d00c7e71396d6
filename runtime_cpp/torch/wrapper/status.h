// What a wrapper does with the status of a vendor function: done, fall back to the CPU, or raise.
#pragma once

#include <diopi/diopirt.h>

#include "export.h"

namespace dipu {

// Remembers why the operator that runs now falls back, for the report; always returns false.
DIPU_API bool refuse(const char* cause) noexcept;

// What torch raises where a function fails on arguments that it takes.
enum class Raises {
    kError,
    kIndexError,  // it reads positions, which may lie out of range
};

// The cold part of `ran`: always false. A status that asks for the fallback gets it. On any other, torch's own kernel is asked what is wrong
// with the arguments, by the same way; where it takes them, c10::Error or c10::IndexError says which function failed.
DIPU_API bool refused(diopiError_t status, const char* function, Raises raises);

// Where an exception is being handled: torch's own kernel is asked in the same way, and the exception is thrown if it takes the arguments.
DIPU_API void ask_of_failure() noexcept;

// Throws at once what `refused` leaves to the fallback, where the operator goes on without one.
DIPU_API void raise_failure();

// Throws what kept the function from what it asked for, e.g. memory, if it failed and that is why.
DIPU_API void raise_failed_request(diopiContextHandle_t context, diopiError_t status, const char* function);

// True when the function ran; false when the operator must be served by the fallback.
inline bool ran(diopiError_t status, const char* function, Raises raises = Raises::kError) {
    if (status == diopiSuccess) [[likely]] {
        return true;
    }
    return refused(status, function, raises);
}

}  // namespace dipu
