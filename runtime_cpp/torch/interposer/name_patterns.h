// Lists of operators as users write them: names and regular expressions, separated by commas.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

// e.g. "add.out, conv.*" matches "add.out", "add.Tensor", "add_.Tensor" and "aten::convolution"; an empty list matches nothing.
class NamePatterns {
public:
    // Throws c10::Error for an expression that is none.
    DIPU_API explicit NamePatterns(const std::string& list);

    // Whether a whole overload name matches, e.g. "add.Tensor"; its operator's name alone, e.g. "add", matches all overloads, and the
    // name of an overload its functional, in-place and out forms.
    DIPU_API bool match(const std::string& overload) const;

    // What is in the list and matches none of these overloads.
    DIPU_API std::vector<std::string> unmatched(const std::vector<std::string>& overloads) const;

    bool empty() const { return patterns_.empty(); }

private:
    struct Pattern {
        std::string text;
        std::regex expression;
        std::string form;  // of the overload that is named so; empty for an expression
    };

    static bool match(const Pattern& pattern, const std::string& name);

    std::vector<Pattern> patterns_;
};

}  // namespace dipu
