// What the generated registration.cpp tells beside operator_files(): the files of derived operators, what was left out,
// what the schemas call inout and torch does not, and which operators take tensors of one device.
#pragma once

#include <string>
#include <vector>

#include "export.h"

namespace dipu {

class Derivations;

// One function for each file of derived operators, in the order of derived/derivations.h.
using DeriveOperators = void (*)(Derivations&);
std::vector<DeriveOperators> derivation_files();

// An operator without a wrapper because this torch lacks it or declares it otherwise than the releases that the generator knows.
struct DriftedOperator {
    std::string name;  // e.g. "gelu"
    std::string reason;  // e.g. "torch 2.14 has no such operator; torch 2.13 has gelu(...)"
};
DIPU_API std::vector<DriftedOperator> drifted_operators();

// An argument that an operator writes, though torch's schema does not say so.
struct SilentWrite {
    const char* overload;  // e.g. "native_batch_norm"
    const char* argument;  // e.g. "running_mean"
};
std::vector<SilentWrite> silent_writes();

// The overloads of which torch's wrappers for devices refuse tensors of two devices, in order.
const std::vector<const char*>& one_device_operators();

}  // namespace dipu
