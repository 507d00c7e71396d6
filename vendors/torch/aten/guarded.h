// The boundary to C: what a function does runs as plain ATen on the host, and what it throws becomes a status.
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <diopi/diopirt.h>

#include <exception>
#include <string>

namespace diopi::aten {

// Carries a status out of a function; the text is what diopiGetLastErrorString() says.
class Failure : public std::exception {
public:
    Failure(diopiError_t status, std::string text) : status_(status), text_(std::move(text)) {}
    diopiError_t status() const noexcept { return status_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    diopiError_t status_;
    std::string text_;
};

// For calls that ATen has no operator for, e.g. refuse("a kernel of this width").
[[noreturn]] void refuse(const char* what);

// For statuses of diopirt.h.
void check(diopiError_t status, const char* what);

// The status of the exception in flight; keeps its text for the calling thread.
diopiError_t status_of_exception() noexcept;

const char* last_error() noexcept;

// Runs `body` and gives its status. The caller may stand inside an operator of PyTorch, under autocast or a mode: ATen
// is called as from a fresh thread that records no gradients.
template <class Body>
diopiError_t guarded(Body&& body) noexcept {
    try {
        const c10::impl::ForceDispatchKeyGuard fresh(c10::default_included_set, c10::default_excluded_set);
        const c10::NoGradGuard no_grad;
        body();
        return diopiSuccess;
    } catch (...) {
        return status_of_exception();
    }
}

}  // namespace diopi::aten
