// Half and BFloat16: two-byte storage types that convert to and from float on the host and on the device, which has
// instructions for it.
#pragma once

#include <cstdint>
#include <cstring>

#include "host_device.h"

namespace diopi::kernels {

// The same bytes as another type.
template <class To, class From>
DIOPI_HD inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "as many bytes");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

DIOPI_HD inline float float_from_bits(uint32_t bits) { return bits_as<float>(bits); }
DIOPI_HD inline uint32_t bits_of_float(float value) { return bits_as<uint32_t>(value); }

// IEEE binary16. Conversions have no table and no loop, so that the compiler can vectorize them.
struct Half {
    uint16_t bits;

    Half() = default;
    DIOPI_HD explicit Half(float value) : bits(encode(value)) {}
    DIOPI_HD operator float() const { return decode(bits); }

    DIOPI_HD static float decode(uint16_t half) {
#if defined(__CUDA_ARCH__)
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
        return value;
#else
        // The exponent moves from bias 15 to bias 127 by a multiplication, which normalizes subnormal values too.
        const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fffu) << 13;
        const float scaled = float_from_bits(magnitude) * float_from_bits(0x77800000u);  // 2^112
        uint32_t result = bits_of_float(scaled);
        result |= (half & 0x7fffu) >= 0x7c00u ? 0x7f800000u : 0u;  // infinity and NaN keep an all-ones exponent
        return float_from_bits(result | static_cast<uint32_t>(half & 0x8000u) << 16);
#endif
    }

    DIOPI_HD static uint16_t encode(float value) {
#if defined(__CUDA_ARCH__)
        uint16_t half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
        return half;
#else
        const uint32_t all = bits_of_float(value);
        const uint32_t sign = all >> 16 & 0x8000u;
        const uint32_t magnitude = all & 0x7fffffffu;
        // Adding 0.5 leaves the ten fraction bits of a subnormal half at the bottom, rounded to nearest even.
        const uint32_t subnormal = bits_of_float(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
        const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
        const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
        uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
        result = magnitude >= 0x47800000u ? special : result;
        return static_cast<uint16_t>(sign | result);
#endif
    }
};

// The upper half of a float: eight exponent bits, seven fraction bits.
struct BFloat16 {
    uint16_t bits;

    BFloat16() = default;
    DIOPI_HD explicit BFloat16(float value) : bits(encode(value)) {}
    DIOPI_HD operator float() const { return decode(bits); }

    DIOPI_HD static float decode(uint16_t upper) { return float_from_bits(static_cast<uint32_t>(upper) << 16); }

    DIOPI_HD static uint16_t encode(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        uint16_t upper;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(upper) : "f"(value));
        return upper;
#else
        const uint32_t all = bits_of_float(value);
        const uint32_t rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16;
        const uint32_t nan = (all >> 16 & 0x8000u) | 0x7fc0u;  // rounding must not carry a NaN into infinity
        return static_cast<uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
#endif
    }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2, "storage types");

}  // namespace diopi::kernels
