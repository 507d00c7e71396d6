// Splits a list at its commas, but for those within brackets of an expression.
#include "name_patterns.h"

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

// ex) "a{1,2}b, c" is two
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

}  // namespace

NamePatterns::NamePatterns(const std::string& list) {
    for (const std::string& part : split(list)) {
        const std::string pattern = without_namespace(trimmed(part));
        if (pattern.empty()) {
            continue;
        }
        try {
            patterns_.emplace_back(pattern);
        } catch (const std::regex_error& error) {
            TORCH_CHECK_VALUE(false, "'", pattern, "' is not a regular expression: ", error.what());
        }
    }
}

bool NamePatterns::match(const std::string& overload) const {
    const std::string name = without_namespace(overload);
    const std::string base = name.substr(0, name.find('.'));
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const std::regex& pattern) {
        return std::regex_match(name, pattern) || std::regex_match(base, pattern);
    });
}

}  // namespace dipu
