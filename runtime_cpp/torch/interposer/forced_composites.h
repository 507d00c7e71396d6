// Operators that torch makes of others (linear algebra, losses, foreach), forced to the CPU as a whole in a running process.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dipu {

// Forces the composite operators that `wanted` names, e.g. "dropout", to the CPU, forward and backward, and no others. Returns their
// names. Operators with a wrapper of their own have a control byte instead; views and questions about tensors are left alone.
std::vector<std::string> force_composites(const std::function<bool(const std::string&)>& wanted);

}  // namespace dipu
