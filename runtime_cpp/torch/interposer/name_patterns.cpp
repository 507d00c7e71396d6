// Splits a list at its commas, but for those within brackets of an expression.
#include "name_patterns.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace dipu {
namespace {

constexpr const char* kBlanks = " \t\r\n";
constexpr const char* kNamespace = "aten::";

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// e.g. "a{1,2}b, c" is two
std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts(1);
    int depth = 0;
    for (const char letter : list) {
        depth += letter == '{' || letter == '(' || letter == '[' ? 1 : 0;
        depth -= (letter == '}' || letter == ')' || letter == ']') && depth > 0 ? 1 : 0;
        if (letter == ',' && depth == 0) {
            parts.emplace_back();
        } else {
            parts.back() += letter;
        }
    }
    return parts;
}

std::string without_namespace(const std::string& name) {
    return name.starts_with(kNamespace) ? name.substr(std::string(kNamespace).size()) : name;
}

// What the functional, in-place and out forms of an operator have in common: the name and what is read, e.g. "add(Tensor self,
// Tensor other, Scalar alpha)" of "add_.Tensor". Empty if there is no such overload.
std::string form_of(const std::string& overload) {
    const std::size_t dot = std::min(overload.find('.'), overload.size());
    std::string form = overload.substr(0, dot);
    const auto op = c10::Dispatcher::singleton().findSchema(
        {kNamespace + form, overload.substr(std::min(dot + 1, overload.size()))});
    if (!op.has_value()) {
        return {};
    }
    if (form.ends_with('_') && !form.ends_with("__")) {
        form.pop_back();
    }
    for (const c10::Argument& argument : op->schema().arguments()) {
        if (!argument.is_out()) {
            form += (form.find('(') == std::string::npos ? "(" : ", ") + argument.type()->str() + " " + argument.name();
        }
    }
    return form;
}

}  // namespace

NamePatterns::NamePatterns(const std::string& list) {
    for (const std::string& part : split(list)) {
        const std::string pattern = without_namespace(trimmed(part));
        if (pattern.empty()) {
            continue;
        }
        try {
            patterns_.push_back({pattern, std::regex(pattern), form_of(pattern)});
        } catch (const std::regex_error& error) {
            TORCH_CHECK_VALUE(false, "'", pattern, "' is not a regular expression: ", error.what());
        }
    }
}

bool NamePatterns::match(const std::string& overload) const {
    const std::string name = without_namespace(overload);
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [&](const Pattern& pattern) { return match(pattern, name); });
}

bool NamePatterns::match(const Pattern& pattern, const std::string& name) {
    return std::regex_match(name, pattern.expression) ||
           std::regex_match(name.substr(0, name.find('.')), pattern.expression) ||
           (!pattern.form.empty() && pattern.form == form_of(name));
}

std::vector<std::string> NamePatterns::unmatched(const std::vector<std::string>& overloads) const {
    std::vector<std::string> found;
    for (const Pattern& pattern : patterns_) {
        if (std::none_of(overloads.begin(), overloads.end(), [&](const auto& name) { return match(pattern, name); })) {
            found.push_back(pattern.text);
        }
    }
    return found;
}

}  // namespace dipu
