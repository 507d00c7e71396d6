// Counters by call, dtype and cause.
#include "report.h"

#include <map>
#include <mutex>
#include <string_view>
#include <tuple>

namespace dipu::collectives {
namespace {

struct Counters {
    std::mutex mutex;
    std::map<std::tuple<std::string_view, c10::ScalarType, std::string>, int64_t> calls;
};

Counters& counters() {
    static Counters* const all = new Counters;
    return *all;
}

}  // namespace

void count_collective(const char* title, c10::ScalarType dtype, const std::string& cause) {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    ++counters().calls[{title, dtype, cause}];
}

std::vector<CollectiveCount> collective_report() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    std::vector<CollectiveCount> rows;
    for (const auto& [key, calls] : counters().calls) {
        const auto& [title, dtype, cause] = key;
        rows.push_back({std::string(title), c10::toString(dtype), cause, calls});
    }
    return rows;
}

void reset_collective_report() {
    const std::lock_guard<std::mutex> lock(counters().mutex);
    counters().calls.clear();
}

}  // namespace dipu::collectives
