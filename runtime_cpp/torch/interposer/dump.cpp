// The text of an operator's arguments, written at once so that threads do not mix their lines.
#include "dump.h"

#include <ATen/core/Formatting.h>
#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdio>
#include <mutex>
#include <sstream>

#include "fallback.h"
#include "settings.h"

namespace dipu {
namespace {

struct State {
    std::mutex mutex;
    DumpStyle style{settings().dump_level, settings().dump_json, {}};
};

State& state() {
    static State& value = *new State;
    return value;
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') {
            result += '\\';
        }
        if (static_cast<unsigned char>(letter) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(letter));
            result += code;
        } else {
            result += letter;
        }
    }
    return result + "\"";
}

template <class Values>
std::string listed(const Values& values) {
    std::ostringstream text;
    text << "[";
    const char* between = "";
    for (const auto& value : values) {
        text << between << value;
        between = ", ";
    }
    text << "]";
    return text.str();
}

// JSON has no infinities.
std::string json_number(double value) {
    std::ostringstream text;
    text.precision(17);
    text << value;
    return std::isfinite(value) ? text.str() : quoted(text.str());
}

std::string json_values(const at::Tensor& tensor) {
    const at::Tensor host = tensor.detach().cpu();
    if (host.is_complex()) {
        std::ostringstream text;
        text << host;
        return quoted(text.str());
    }
    const at::Tensor flat = host.to(c10::kDouble).contiguous();
    const auto* const numbers = flat.const_data_ptr<double>();
    std::string text = "[";
    for (int64_t i = 0; i < flat.numel(); ++i) {
        text += (i == 0 ? "" : ", ") + json_number(numbers[i]);
    }
    return text + "]";
}

std::string json(const at::Tensor& tensor, int level) {
    if (!tensor.defined()) {
        return "null";
    }
    std::string text = "{\"dtype\": " + quoted(c10::toString(tensor.scalar_type())) +
                       ", \"shape\": " + listed(tensor.sizes()) + ", \"stride\": " + listed(tensor.strides()) +
                       ", \"offset\": " + std::to_string(tensor.storage_offset()) +
                       ", \"device\": " + quoted(tensor.device().str());
    return text + (level >= 3 ? ", \"values\": " + json_values(tensor) + "}" : "}");
}

std::string json(const c10::IValue& value, int level) {
    if (value.isTensor()) {
        return json(value.toTensor(), level);
    }
    if (value.isList()) {
        std::vector<std::string> parts;
        for (const c10::IValue& item : value.toListRef()) {
            parts.push_back(json(item, level));
        }
        return listed(parts);
    }
    if (value.isNone()) {
        return "null";
    }
    if (value.isBool()) {
        return value.toBool() ? "true" : "false";
    }
    if (value.isInt()) {
        return std::to_string(value.toInt());
    }
    if (value.isDouble()) {
        return json_number(value.toDouble());
    }
    std::ostringstream text;
    text << value;
    return quoted(value.isString() ? value.toStringRef() : text.str());
}

void describe(std::ostream& out, const at::Tensor& tensor, int level) {
    if (!tensor.defined()) {
        out << "undefined";
        return;
    }
    out << "Tensor" << tensor.sizes() << " " << tensor.scalar_type() << " " << tensor.device() << " strides "
        << tensor.strides();
    if (level >= 3 && tensor.numel() != 0) {
        out << "\n" << tensor.detach().cpu();
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

std::string as_text(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values, int level) {
    std::ostringstream text;
    text << "dipu: " << overload_name(op) << "\n";
    for (std::size_t index = 0; level >= 2 && index < values.size(); ++index) {
        text << "  " << op.schema().arguments()[index].name() << ": ";
        describe(text, values[index], level);
        text << "\n";
    }
    return text.str();
}

std::string as_json(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values, int level) {
    std::string text = "{\"op\": " + quoted(overload_name(op));
    if (level >= 2) {
        text += ", \"args\": {";
        for (std::size_t index = 0; index < values.size(); ++index) {
            text += (index == 0 ? "" : ", ") + quoted(op.schema().arguments()[index].name()) + ": " +
                    json(values[index], level);
        }
        text += "}";
    }
    return text + "}\n";
}

}  // namespace

void set_dump_style(DumpStyle style) {
    TORCH_CHECK_VALUE(style.level >= 0 && style.level <= 3, "the level of a dump is 0, 1, 2 or 3, not ", style.level);
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().style = std::move(style);
}

void dump_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    DumpStyle style;
    {
        const std::lock_guard<std::mutex> lock(state().mutex);
        style = state().style;
    }
    const auto values = torch::jit::last(stack, op.schema().arguments().size());
    const std::string text = style.json ? as_json(op, values, style.level) : as_text(op, values, style.level);
    const std::lock_guard<std::mutex> lock(state().mutex);
    std::FILE* const file = style.path.empty() ? stderr : std::fopen(style.path.c_str(), "a");
    TORCH_CHECK(file != nullptr, "cannot write the dump of arguments to ", style.path);
    std::fputs(text.c_str(), file);
    if (file != stderr) {
        std::fclose(file);
    }
}

}  // namespace dipu
