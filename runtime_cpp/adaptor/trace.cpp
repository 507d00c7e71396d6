// The log of conversions and its totals.
#include "trace.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "describe.h"
#include "layout.h"

namespace diopi::adaptor {

namespace {

int64_t elements(const Description& tensor) {
    int64_t count = 1;
    for (int64_t d = 0; d < tensor.rank; ++d) count *= tensor.sizes[d];
    return count;
}

// e.g. "float32 channels_last"
std::string form(const Description& tensor) {
    std::string text = diopiDtypeName(tensor.dtype);
    const uint32_t orders = contract::orders_of(tensor.sizes, tensor.strides, tensor.rank);
    if ((orders & diopi_order_contiguous) != 0) return text + " contiguous";
    return text + ((orders & diopi_order_channels_last) != 0 ? " channels_last" : " strided");
}

struct Total {
    int64_t times = 0;
    int64_t bytes = 0;
};

// Lines go out one by one, so that a crash loses none; totals when the library is unloaded or the process ends.
class Log {
public:
    Log(std::FILE* file, bool lines) : file_(file), lines_(lines) {}
    ~Log() {
        tell_totals();
        if (file_ != stderr) std::fclose(file_);
    }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    void add(const std::string& conversion, int64_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        Total& total = totals_[conversion];
        ++total.times;
        total.bytes += bytes;
        if (!lines_) return;
        std::fprintf(file_, "diopi adaptor: %s, %lld bytes\n", conversion.c_str(), static_cast<long long>(bytes));
        std::fflush(file_);
    }

private:
    // The most expensive first, those of the same cost by name.
    void tell_totals() {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::vector<std::pair<std::string, Total>> rows(totals_.begin(), totals_.end());
        std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
            return std::tie(b.second.bytes, a.first) < std::tie(a.second.bytes, b.first);
        });
        Total all;
        for (const auto& [conversion, total] : rows) {
            all.times += total.times;
            all.bytes += total.bytes;
        }
        std::fprintf(file_, "diopi adaptor: %lld conversions moved %lld bytes\n", static_cast<long long>(all.times),
                     static_cast<long long>(all.bytes));
        for (const auto& [conversion, total] : rows) {
            std::fprintf(file_, "%16lld bytes %10lld times  %s\n", static_cast<long long>(total.bytes),
                         static_cast<long long>(total.times), conversion.c_str());
        }
    }

    std::FILE* file_;
    bool lines_;
    std::mutex mutex_;
    std::map<std::string, Total> totals_;
};

// Null where nobody asked.
Log* log() {
    static Log* const only = []() -> Log* {
        const char* const wanted = std::getenv("DIOPI_ADAPTOR_TRACE");
        const std::string text = wanted == nullptr ? "" : wanted;
        if (text.empty() || text == "0") return nullptr;
        std::FILE* file = stderr;
        if (text != "1" && text != "totals") file = std::fopen(text.c_str(), "a");
        if (file == nullptr) {
            std::fprintf(stderr, "diopi adaptor: DIOPI_ADAPTOR_TRACE: '%s' cannot be written; there is no trace\n",
                         text.c_str());
            return nullptr;
        }
        static Log made(file, text != "totals");
        return &made;
    }();
    return only;
}

}  // namespace

bool tracing() noexcept {
    static const bool on = log() != nullptr;
    return on;
}

void trace(const char* function, const char* parameter, diopiConstTensorHandle_t from,
           diopiConstTensorHandle_t to) noexcept {
    Description source;
    Description target;
    if (describe(from, &source) != diopiSuccess || describe(to, &target) != diopiSuccess) return;
    try {
        const std::string what = std::string(function) + " " + parameter + ": " + form(source) + " -> " + form(target);
        log()->add(what, elements(source) * (diopiDtypeBytes(source.dtype) + diopiDtypeBytes(target.dtype)));
    } catch (const std::exception&) {
        // A trace that lacks memory leaves out a line; the call goes on.
    }
}

}  // namespace diopi::adaptor
