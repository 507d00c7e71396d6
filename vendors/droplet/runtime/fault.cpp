// Reads a plan of faults.
#include "fault.h"

#include <charconv>
#include <string>

#include "error.h"

namespace droplet {
namespace {

struct Plan {
    int64_t malloc = 0;
    int64_t launch = 0;
    int64_t copy_delay = 0;
};

[[noreturn]] void refuse(std::string_view entry) {
    throw Error(tangErrorInitialization, "'" + std::string(entry) +
                                             "' is not a fault: write malloc:<n>, launch:<n> or slow-copy:<n>us, "
                                             "separated by commas, in DROPLET_FAULT");
}

int64_t count_of(std::string_view entry, std::string_view digits) {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc() || end != digits.data() + digits.size() || value < 1) refuse(entry);
    return value;
}

void read_entry(std::string_view entry, Plan& plan) {
    const size_t colon = entry.find(':');
    if (colon == std::string_view::npos) refuse(entry);
    const std::string_view kind = entry.substr(0, colon);
    std::string_view value = entry.substr(colon + 1);
    if (kind == "malloc") {
        plan.malloc = count_of(entry, value);
    } else if (kind == "launch") {
        plan.launch = count_of(entry, value);
    } else if (kind == "slow-copy" && value.size() > 2 && value.substr(value.size() - 2) == "us") {
        plan.copy_delay = count_of(entry, value.substr(0, value.size() - 2));
    } else {
        refuse(entry);
    }
}

}  // namespace

void FaultPlan::set(std::string_view text) {
    Plan plan;
    const bool any = !text.empty();
    while (!text.empty()) {
        const size_t comma = text.find(',');
        read_entry(text.substr(0, comma), plan);
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    mallocs_ = plan.malloc;
    launches_ = plan.launch;
    copy_delay_ = plan.copy_delay;
    active_ = any;
}

}  // namespace droplet
