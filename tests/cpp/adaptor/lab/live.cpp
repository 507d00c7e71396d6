// Reads the rules of a call.
#include "live.h"

#include <algorithm>
#include <sstream>

#include "lab.h"

using diopi::adaptor::Order;
using diopi::adaptor::Rule;

namespace {

diopiDtype_t dtype_of(const std::string& word) {
    return static_cast<diopiDtype_t>(std::find(lab::words.begin(), lab::words.end(), word) - lab::words.begin());
}

Rule read(const std::string& text) {
    static const std::map<std::string, Order> orders = {{"channels_first", Order::channels_first},
                                                        {"channels_last", Order::channels_last},
                                                        {"prefer_first", Order::prefer_first},
                                                        {"prefer_last", Order::prefer_last}};
    Rule rule;
    std::istringstream stream(text);
    for (std::string step, first, second; stream >> step;) {
        if (step == "contiguous") {
            rule = rule.contiguous();
            continue;
        }
        stream >> first >> second;
        rule = step == "cast" ? rule.cast(dtype_of(first), dtype_of(second))
                              : rule.order(std::stoi(first), orders.at(second));
    }
    return rule;
}

}  // namespace

const Rule& live(const char* parameter) {
    static std::map<std::string, Rule> known;  // by their text: a rule outlives its call
    const auto found = lab::rules.find(parameter);
    const std::string& text = found == lab::rules.end() ? "" : found->second;
    return known.try_emplace(text, read(text)).first->second;
}
