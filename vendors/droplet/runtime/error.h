// Failures inside droplet are exceptions; at the C boundary they become a code and a sentence kept per thread.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "tang_runtime.h"

namespace droplet {

class Error : public std::runtime_error {
public:
    Error(tangError_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
    tangError_t code() const { return code_; }

private:
    tangError_t code_;
};

// Keeps the failure for tangGetLastError() and tangGetLastErrorMessage(), and returns its code.
tangError_t record_error(tangError_t code, const char* message) noexcept;

// Runs the body of a C function; no exception leaves it. The body returns a tangError_t.
template <class Body>
tangError_t at_boundary(Body&& body) noexcept {
    try {
        return std::forward<Body>(body)();
    } catch (const Error& error) {
        return record_error(error.code(), error.what());
    } catch (const std::bad_alloc&) {
        return record_error(tangErrorMemoryAllocation, "the host is out of memory: free some and try again");
    } catch (const std::exception& error) {
        return record_error(tangErrorUnknown, error.what());
    }
}

inline void require(bool condition, tangError_t code, const char* message) {
    if (!condition) throw Error(code, message);
}

}  // namespace droplet
