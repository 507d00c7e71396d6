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
    int64_t link_delay = 0;
    int64_t die = 0;
    int64_t hang = 0;
    int64_t corrupt = 0;
};

[[noreturn]] void refuse(std::string_view entry) {
    throw Error(tangErrorInitialization, "'" + std::string(entry) +
                                             "' is not a fault: write malloc:<n>, launch:<n>, slow-copy:<n>us, "
                                             "slow-link:<n>us, rank-die:<n>, rank-hang:<n> or link-corrupt:<n>, "
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
    const std::string_view value = entry.substr(colon + 1);
    const auto time = [&] {
        constexpr std::string_view kUnit = "us";
        if (value.size() <= kUnit.size() || value.substr(value.size() - kUnit.size()) != kUnit) refuse(entry);
        return count_of(entry, value.substr(0, value.size() - kUnit.size()));
    };
    if (kind == "malloc") {
        plan.malloc = count_of(entry, value);
    } else if (kind == "launch") {
        plan.launch = count_of(entry, value);
    } else if (kind == "slow-copy") {
        plan.copy_delay = time();
    } else if (kind == "slow-link") {
        plan.link_delay = time();
    } else if (kind == "rank-die") {
        plan.die = count_of(entry, value);
    } else if (kind == "rank-hang") {
        plan.hang = count_of(entry, value);
    } else if (kind == "link-corrupt") {
        plan.corrupt = count_of(entry, value);
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
    link_delay_ = plan.link_delay;
    deaths_ = plan.die;
    hangs_ = plan.hang;
    corruptions_ = plan.corrupt;
    active_ = any;
}

}  // namespace droplet
