// Divisions by numbers that are known before a kernel starts.
#pragma once

#include <cstdint>

#include "core/host_device.h"

namespace diopi::kernels {

// Divides numbers below 2^31 by a multiplication and a shift (Granlund and Montgomery, "Division by Invariant Integers
// using Multiplication", 1994).
struct FixedDivisor {
    uint32_t size = 1;
    uint32_t multiplier = 1;
    uint32_t shift = 0;

    FixedDivisor() = default;
    explicit FixedDivisor(int64_t by) : size(static_cast<uint32_t>(by)) {
        while ((uint64_t{1} << shift) < size) ++shift;
        const uint64_t rest = (uint64_t{1} << shift) - size;
        multiplier = static_cast<uint32_t>((rest << 32) / size + 1);
    }

    DIOPI_HD uint32_t quotient(uint32_t number) const {
        const auto high = static_cast<uint32_t>(static_cast<uint64_t>(number) * multiplier >> 32);
        return (high + number) >> shift;
    }
};

// Divides by any size; numbers below 2^31 without a division.
struct Divider {
    int64_t size = 1;
    FixedDivisor small;

    Divider() = default;
    explicit Divider(int64_t by) : size(by), small(is_small(by) && by > 0 ? by : 1) {}

    DIOPI_HD static bool is_small(int64_t number) { return number <= INT32_MAX; }

    // Of a number that is not negative.
    DIOPI_HD int64_t quotient(int64_t number) const {
        if (is_small(number) && is_small(size)) return small.quotient(static_cast<uint32_t>(number));
        return number / size;
    }
    // Leaves the quotient in `number` and gives the remainder.
    DIOPI_HD int64_t split(int64_t& number) const {
        const int64_t whole = number;
        number = quotient(whole);
        return whole - number * size;
    }
};

}  // namespace diopi::kernels
