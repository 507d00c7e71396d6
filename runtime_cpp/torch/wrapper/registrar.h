// How a wrapper file offers its operators: each is registered if the vendor library has the functions that it needs.
#pragma once

#include <torch/library.h>

#include <initializer_list>
#include <vector>

#include "control.h"
#include "vendor_function.h"

namespace dipu {

class Registrar {
public:
    explicit Registrar(torch::Library& library) : library_(library) {}

    // Plain function pointers share torch's boxing code between all kernels of one signature.
    // `control.name` is the overload, e.g. "add.Tensor".
    template <class Kernel>
    void add(OperatorControl& control, Kernel* kernel, std::initializer_list<VendorSlot*> functions) {
        if (admits(control, functions)) {
            library_.impl(control.name, kernel);
        }
    }

    // For a wrapper that calls one of the functions, whichever the arguments ask for: one is enough, and calls that ask for another one fall back.
    template <class Kernel>
    void add_any(OperatorControl& control, Kernel* kernel, std::initializer_list<VendorSlot*> functions) {
        if (admits_any(control, functions)) {
            library_.impl(control.name, kernel);
        }
    }

    // Looks up functions that a wrapper can do without.
    DIPU_API void resolve(std::initializer_list<VendorSlot*> functions);

    // The same for an operator that is written with others, named by their overloads.
    template <class Kernel>
    void add_derived(OperatorControl& control, Kernel* kernel, const std::vector<const char*>& overloads) {
        if (admits_derived(control, overloads)) {
            library_.impl(control.name, kernel);
        }
    }

private:
    // Resolves the functions; registers the boxed fallback and the interposer for the operator on their keys.
    DIPU_API bool admits(OperatorControl& control, std::initializer_list<VendorSlot*> functions);

    // The same where one of the functions is there.
    DIPU_API bool admits_any(OperatorControl& control, std::initializer_list<VendorSlot*> functions);

    // The same where the device runs all `overloads`.
    DIPU_API bool admits_derived(OperatorControl& control, const std::vector<const char*>& overloads);

    torch::Library& library_;
};

using RegisterOperators = void (*)(Registrar&);

// Defined by the generated sources: one function for each wrapper file.
std::vector<RegisterOperators> operator_files();

}  // namespace dipu
