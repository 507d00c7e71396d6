// Preloaded before the backend, in place of the generated list: an operator that drifted.
#include <string>
#include <vector>

namespace dipu {

struct DriftedOperator {
    std::string name;
    std::string reason;
};

__attribute__((visibility("default"))) std::vector<DriftedOperator> drifted_operators();

std::vector<DriftedOperator> drifted_operators() { return {{"geqrf", "torch 2.14 has no such operator"}}; }

}  // namespace dipu
