// Times named variants in turns: each round runs every variant once, so that a slow moment of the machine meets all alike.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace benchmarks {

struct Variant {
    std::string name;  // e.g. "at::add on dipu"
    std::function<void(long)> run;  // makes that many calls
    std::vector<double> nanoseconds{};  // per call, one for each round
};

// A loop around `call` that the compiler keeps as one body: no indirect call is part of what is measured.
template <class Call>
Variant variant(std::string name, Call call) {
    return {std::move(name), [call](long calls) mutable {
                for (long i = 0; i < calls; ++i) call();
            }};
}

// The time of this thread alone is the default: what other processes do to the machine is not the callee's. Work that
// other threads do needs the time on the wall.
constexpr clockid_t kThreadTime = CLOCK_THREAD_CPUTIME_ID;
constexpr clockid_t kWallTime = CLOCK_MONOTONIC;

inline double nanoseconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

inline void measure(std::vector<Variant>& variants, int rounds, long calls, clockid_t clock = kThreadTime) {
    for (Variant& each : variants) each.run(calls / 4);
    for (int round = 0; round < rounds; ++round) {
        for (Variant& each : variants) {
            const double start = nanoseconds(clock);
            each.run(calls);
            each.nanoseconds.push_back((nanoseconds(clock) - start) / static_cast<double>(calls));
        }
    }
}

// Measures those variants whose names contain `part`, and prints one line of JSON for each.
inline void report(std::vector<Variant> variants, const std::string& part, int rounds, long calls,
                   clockid_t clock = kThreadTime) {
    const auto unwanted = [&part](const Variant& each) { return each.name.find(part) == std::string::npos; };
    variants.erase(std::remove_if(variants.begin(), variants.end(), unwanted), variants.end());
    measure(variants, rounds, calls, clock);
    for (const Variant& each : variants) {
        std::printf("{\"name\": \"%s\", \"ns\": [", each.name.c_str());
        for (size_t i = 0; i < each.nanoseconds.size(); ++i)
            std::printf("%s%.3f", i == 0 ? "" : ", ", each.nanoseconds[i]);
        std::printf("]}\n");
    }
}

}  // namespace benchmarks
