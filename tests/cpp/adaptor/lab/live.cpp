// Reads the rules of a call.
#include "live.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "lab.h"

using diopi::adaptor::Order;
using diopi::adaptor::Rule;

namespace {

diopiDtype_t dtype_of(const std::string& word) {
    return static_cast<diopiDtype_t>(std::find(lab::words.begin(), lab::words.end(), word) - lab::words.begin());
}

// A rule whose orders are values: in generated code they are part of its type.
struct LiveRule : Rule {
    LiveRule(const Rule& casts, std::array<Order, 3> orders, Order others) : Rule(casts, orders, others) {}
};

LiveRule read(const std::string& text) {
    static const std::map<std::string, Order> orders = {{"channels_first", Order::channels_first},
                                                        {"channels_last", Order::channels_last},
                                                        {"prefer_first", Order::prefer_first},
                                                        {"prefer_last", Order::prefer_last}};
    Rule casts;
    std::array<Order, 3> of_ranks{};
    Order others = Order::any;
    std::istringstream stream(text);
    for (std::string step, first, second; stream >> step;) {
        if (step == "contiguous") {
            others = Order::channels_first;
            continue;
        }
        stream >> first >> second;
        if (step == "cast") {
            casts = casts.cast(dtype_of(first), dtype_of(second));
        } else {
            of_ranks.at(std::stoul(first) - 3) = orders.at(second);
        }
    }
    return {casts, of_ranks, others};
}

}  // namespace

const Rule& live(const char* parameter) {
    static std::map<std::string, LiveRule> known;  // by their text: a rule outlives its call
    const auto found = lab::rules.find(parameter);
    const std::string& text = found == lab::rules.end() ? "" : found->second;
    return known.try_emplace(text, read(text)).first->second;
}
