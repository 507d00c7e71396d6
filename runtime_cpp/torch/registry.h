// Which operators run on the device, which lack a vendor function, and the control byte of each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "export.h"
#include "wrapper/registrar.h"

namespace dipu {

// Registers every generated operator whose vendor functions exist.
void register_operators(torch::Library& library);

// The control byte of an operator, e.g. "aten::add.Tensor"; 0 for one without a wrapper.
uint8_t control_bits(const std::string& name);

// Whether an operator, e.g. "aten::add.Tensor", has a wrapper with a control byte.
bool has_wrapper(const std::string& name);

// How the results of an operator are held against the CPU's, e.g. "aten::sort".
const Judgement& judgement_of(const std::string& name);

// e.g. "add.Tensor"
DIPU_API std::vector<std::string> native_operators();

// Whether an operator writes an argument that torch's schema says it only reads, e.g. "aten::native_batch_norm", "running_mean".
bool writes_silently(const std::string& name, const std::string& argument);

// The operators that are written with others, each with those that it needs on the device.
DIPU_API std::map<std::string, std::vector<std::string>> derived_operators();

struct Unavailable {
    std::string operator_name;
    std::string function;  // the first that the vendor library lacks
};
DIPU_API std::vector<Unavailable> unavailable_operators();

}  // namespace dipu
