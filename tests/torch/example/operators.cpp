// The list of wrapper files, in the form that the generator emits.
#include "wrapper/registrar.h"

namespace dipu {

void register_arithmetic(Registrar& registrar);

std::vector<RegisterOperators> operator_files() { return {&register_arithmetic}; }

}  // namespace dipu
