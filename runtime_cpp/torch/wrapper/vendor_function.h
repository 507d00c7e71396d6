// A function of the vendor library: typed by the header's declaration, resolved by name when the operators are registered.
#pragma once

#include <diopi/diopirt.h>

namespace dipu {

// The untyped part: what the registry resolves.
struct VendorSlot {
    const char* name;         // ex) "diopiAdd"
    void* address = nullptr;  // null until resolved, and when the library lacks the function
};

template <class Signature>
struct VendorFunction;

// Declared by a file that calls the function, and called as if it were the function itself:
//   constinit VendorFunction<decltype(::diopiAdd)> diopiAdd{{"diopiAdd"}};
template <class... Params>
struct VendorFunction<diopiError_t(Params...)> : VendorSlot {
    diopiError_t operator()(Params... params) const {
        return reinterpret_cast<diopiError_t (*)(Params...)>(address)(params...);
    }
};

}  // namespace dipu
