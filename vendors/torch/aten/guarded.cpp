// Exceptions as statuses and texts.
#include "aten/guarded.h"

#include <c10/util/Exception.h>

#include <new>
#include <string_view>

namespace diopi::aten {
namespace {

std::string& message() {
    thread_local std::string text;
    return text;
}

diopiError_t kept(const char* text, diopiError_t status) {
    message() = text;
    return status;
}

// What AT_DISPATCH says of an element type, e.g. "addmm_impl_cpu_" not implemented for 'Half'.
bool is_about_dtype(std::string_view text) { return text.find("\" not implemented for '") != std::string_view::npos; }

diopiError_t sorted() {
    try {
        throw;
    } catch (const Failure& failure) {
        return kept(failure.what(), failure.status());
    } catch (const c10::NotImplementedError& error) {
        const char* text = error.what_without_backtrace();
        return kept(text, is_about_dtype(text) ? diopiDtypeNotSupported : diopiNoImplement);
    } catch (const c10::Error& error) {
        return kept(error.what_without_backtrace(), diopiErrorOccurred);
    } catch (const std::exception& error) {
        return kept(error.what(), diopiErrorOccurred);
    }
}

}  // namespace

void refuse(const char* what) { throw Failure(diopiNoImplement, std::string("ATen has no operator for ") + what); }

void check(diopiError_t status, const char* what) {
    if (status != diopiSuccess) throw Failure(status, what);
}

diopiError_t status_of_exception() noexcept {
    try {
        return sorted();
    } catch (...) {
        return diopiErrorOccurred;  // there is no memory left even for the text
    }
}

const char* last_error() noexcept { return message().c_str(); }

}  // namespace diopi::aten
