// Lists of operators as users write them: names and regular expressions, separated by commas.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "export.h"

namespace dipu {

// ex) "add.out, conv.*" matches "add.out" and "aten::convolution"; an empty list matches nothing.
class NamePatterns {
public:
    // Throws c10::Error for an expression that is none.
    DIPU_API explicit NamePatterns(const std::string& list);

    // Whether a whole overload name matches, ex) "add.Tensor"; its operator's name alone, ex) "add", matches all overloads.
    DIPU_API bool match(const std::string& overload) const;

    bool empty() const { return patterns_.empty(); }

private:
    std::vector<std::regex> patterns_;
};

}  // namespace dipu
