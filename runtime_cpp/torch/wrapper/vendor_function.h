// A function of the vendor library: typed by the header's declaration, resolved by name when the operators are registered.
#pragma once

#include <diopi/diopirt.h>

#include "profiler/call_span.h"
#include "status.h"

namespace dipu {

// The untyped part: what the registry resolves.
struct VendorSlot {
    const char* name;  // e.g. "diopiAdd"
    void* address =
        nullptr;  // null until resolved, and when the library lacks the function; a call then says diopiNoImplement
};

template <class Signature>
struct VendorFunction;

// Declared by a file that calls the function, and called as if it were the function itself:
//   constinit VendorFunction<decltype(::diopiAdd)> diopiAdd{{"diopiAdd"}};
template <class... Params>
struct VendorFunction<diopiError_t(diopiContextHandle_t, Params...)> : VendorSlot {
    diopiError_t operator()(diopiContextHandle_t context, Params... params) const {
        if (recording_spans()) [[unlikely]] {
            return recorded(context, params...);
        }
        return call(context, params...);
    }

private:
    diopiError_t call(diopiContextHandle_t context, Params... params) const {
        if (address == nullptr) [[unlikely]] {
            return diopiNoImplement;
        }
        const auto function = reinterpret_cast<diopiError_t (*)(diopiContextHandle_t, Params...)>(address);
        const diopiError_t status = function(context, params...);
        if (status != diopiSuccess) [[unlikely]] {
            raise_failed_request(context, status, name);
        }
        return status;
    }
    [[gnu::cold, gnu::noinline]] diopiError_t recorded(diopiContextHandle_t context, Params... params) const {
        const CallSpan span(name, context);
        return call(context, params...);
    }
};

}  // namespace dipu
