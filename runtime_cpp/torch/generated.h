// What the generated registration.cpp tells beside operator_files(): the files of derived operators, and what was left out.
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
    std::string name;    // ex) "gelu"
    std::string reason;  // ex) "torch 2.14 has no such operator; torch 2.13 has gelu(...)"
};
DIPU_API std::vector<DriftedOperator> drifted_operators();

}  // namespace dipu
