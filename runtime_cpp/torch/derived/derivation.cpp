// Names and in-place results of derived operators.
#include "derivation.h"

#include <c10/util/Exception.h>

#include <deque>

namespace dipu {

void write_inplace(const at::Tensor& self, const at::Tensor& result) {
    check_cast(result.scalar_type(), self);
    TORCH_CHECK(self.sizes() == result.sizes(), "output with shape ", self.sizes(),
                " doesn't match the broadcast shape ", result.sizes());
    self.copy_(result);
}

bool write_out(const at::Tensor& out, const at::Tensor& result) {
    if (out.scalar_type() != result.scalar_type()) {
        return ask_torch("an output of another dtype");
    }
    assign(out, result);
    return true;
}

const char* Derivations::overload(const char* name, const char* overload_name) {
    static auto& names = *new std::deque<std::string>;
    const std::string base = std::string(name).substr(std::string("aten::").size());
    return names.emplace_back(*overload_name == '\0' ? base : base + "." + overload_name).c_str();
}

}  // namespace dipu
