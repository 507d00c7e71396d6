// The text of an operator's arguments, written at once so that threads do not mix their lines.
#include "dump.h"

#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>

#include <cstdio>
#include <sstream>

#include "fallback.h"

namespace dipu {
namespace {

void describe(std::ostream& out, const at::Tensor& tensor, int level) {
    if (!tensor.defined()) {
        out << "undefined";
        return;
    }
    out << "Tensor" << tensor.sizes() << " " << tensor.scalar_type() << " " << tensor.device() << " strides " << tensor.strides();
    if (level < 2 || tensor.numel() == 0) {
        return;
    }
    const at::Tensor host = tensor.detach().cpu();
    if (!host.is_complex()) {
        const at::Tensor wide = host.to(c10::kDouble);
        out << " min " << wide.min().item().toDouble() << " max " << wide.max().item().toDouble() << " mean "
            << wide.mean().item().toDouble();
    }
    if (level >= 3) {
        out << "\n" << host;
    }
}

void describe(std::ostream& out, const c10::IValue& value, int level) {
    if (value.isTensor()) {
        describe(out, value.toTensor(), level);
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
            out << "\n    ";
            describe(out, tensor, level);
        }
    } else {
        out << value;
    }
}

}  // namespace

void dump_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack, int level) {
    const auto& arguments = op.schema().arguments();
    const std::size_t begin = stack.size() - arguments.size();
    std::ostringstream text;
    text << "dipu: " << overload_name(op) << "\n";
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        text << "  " << arguments[index].name() << ": ";
        describe(text, stack[begin + index], level);
        text << "\n";
    }
    std::fputs(text.str().c_str(), stderr);
}

}  // namespace dipu
