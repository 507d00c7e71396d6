// Failures inside standalone are exceptions; at the C boundary they become a status and a sentence kept per thread.
#pragma once

#include <diopi/diopirt.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace diopi::standalone {

class Error : public std::runtime_error {
public:
    explicit Error(const std::string& message, diopiError_t status = diopiErrorOccurred)
        : std::runtime_error(message),
          status_(status) {}
    diopiError_t status() const { return status_; }

private:
    diopiError_t status_;
};

const char* last_error() noexcept;
void record_error(const char* message) noexcept;

inline void require(bool condition, const char* message) {
    if (!condition) throw Error(message);
}

// Runs the body of a C function; no exception leaves it.
template <class Body>
diopiError_t at_boundary(Body&& body) noexcept {
    try {
        std::forward<Body>(body)();
        return diopiSuccess;
    } catch (const Error& error) {
        record_error(error.what());
        return error.status();
    } catch (const std::exception& error) {
        record_error(error.what());
        return diopiErrorOccurred;
    } catch (...) {
        record_error("an exception that says nothing");
        return diopiErrorOccurred;
    }
}

}  // namespace diopi::standalone
