// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random bits as a function of a
// seed and a position, so that each element draws its own, in any order and on any device.
#pragma once

#include <diopi/diopirt.h>

#include "core/error.h"
#include "core/handles.h"
#include "math.h"

namespace diopi::kernels {

struct RandomBits {
    uint64_t first;
    uint64_t second;
};

DIOPI_HD inline RandomBits philox(uint64_t seed, uint64_t offset, uint64_t position) {
    uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    uint32_t counter[4] = {static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32),
                           static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32)};
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53u} * counter[0];
        const uint64_t b = uint64_t{0xCD9E8D57u} * counter[2];
        counter[0] = static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0];
        counter[1] = static_cast<uint32_t>(b);
        counter[2] = static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1];
        counter[3] = static_cast<uint32_t>(a);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    return {static_cast<uint64_t>(counter[1]) << 32 | counter[0], static_cast<uint64_t>(counter[3]) << 32 | counter[2]};
}

// In [0, 1), with the 53 bits of a double.
DIOPI_HD inline double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Box and Muller's transformation of two independent draws.
DIOPI_HD inline double standard_normal(const RandomBits& bits) {
    const double radius = math::sqrt(-2.0 * math::log(1.0 - unit_interval(bits.first)));
    return radius * math::cos(6.283185307179586 * unit_interval(bits.second));
}

constexpr uint64_t kStreamStep = 4;  // torch wants offsets in multiples of four

// The position of one launch in a generator's stream.
struct RandomStream {
    uint64_t seed;
    uint64_t offset;

    // As torch counts: an offset is one of 32-bit numbers, of which a counter of Philox gives four.
    DIOPI_HD RandomBits draw(int64_t position) const {
        return philox(seed, offset / kStreamStep, static_cast<uint64_t>(position));
    }
    DIOPI_HD double uniform(int64_t position) const { return unit_interval(draw(position).first); }
};

inline RandomStream current_stream(Generator generator) {
    require(generator != nullptr, "a random operator needs a generator");
    RandomStream stream{};
    check(diopiGeneratorGetSeedAndOffset(generator, &stream.seed, &stream.offset), "the generator gives no seed");
    return stream;
}

// Advances the generator, so that the next launch draws other numbers.
inline RandomStream next_stream(Generator generator) {
    const RandomStream stream = current_stream(generator);
    check(diopiGeneratorSetSeedAndOffset(generator, stream.seed, stream.offset + kStreamStep),
          "the generator takes no offset");
    return stream;
}

// What the last launch drew, for a gradient that gets the generator as its forward operator left it.
inline RandomStream last_stream(Generator generator) {
    RandomStream stream = current_stream(generator);
    stream.offset -= kStreamStep;
    return stream;
}

}  // namespace diopi::kernels
