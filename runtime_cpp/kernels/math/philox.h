// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): random bits as a function of a
// seed and a position, so that each element draws its own, in any order and on any device.
#pragma once

#include <diopi/diopirt.h>

#include <cmath>

#include "core/error.h"
#include "core/half.h"
#include "core/handles.h"
#include "core/launcher.h"
#include "math.h"

namespace diopi::kernels {

struct RandomBits {
    static constexpr int kWords = 4;

    uint64_t first;
    uint64_t second;

    DIOPI_HD uint64_t half(int64_t k) const { return k == 0 ? first : second; }
    DIOPI_HD uint32_t word(int k) const { return static_cast<uint32_t>((k < 2 ? first : second) >> (k % 2 * 32)); }
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

#if defined(__CUDACC__)

// In [0, 1), with the 53 bits of a double.
DIOPI_HD inline double unit_interval(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

namespace philox_detail {
DIOPI_HD inline double log(double x) { return math::log(x); }
DIOPI_HD inline double cos_of_turns(double turns) { return math::cos(6.283185307179586 * turns); }
}  // namespace philox_detail

#else

// Without calls and branches, so that loops over them become vector code.
namespace philox_detail {

// For less than 2^52.
inline double whole(uint64_t value) { return bits_as<double>(value | 0x4330000000000000u) - 0x1p52; }

// The coefficient of 1 comes first.
template <int n>
inline double polynomial(double x, const double (&coefficients)[n]) {
    double sum = coefficients[n - 1];
    for (int i = n - 2; i >= 0; --i) sum = sum * x + coefficients[i];
    return sum;
}

// Of a normal number up to 1.
inline double log(double x) {
    constexpr uint64_t root = 0x3fe6a09e667f3bcdu;  // sqrt(0.5): the fraction goes from there to sqrt(2)
    const uint64_t shifted = bits_as<uint64_t>(x) - root + 0x3ff0000000000000u;
    const double fraction = bits_as<double>((shifted & 0xfffffffffffffu) + root);
    const double s = (fraction - 1.0) / (fraction + 1.0);
    const double square = s * s;
    const double series =
        polynomial(square, {0.6666666666666666, 0.40000000000000946, 0.2857142857076317, 0.222222224008359,
                            0.18181794670417264, 0.1538629217588882, 0.13267375084628505, 0.13101171852591828});
    return (whole(shifted >> 52) - 1023.0) * 0.6931471805599453 + (2.0 * s + s * square * series);
}

// Of so many turns, from -1 to 1.
inline double cos_of_turns(double turns) {
    constexpr double shift =
        6755399441055744.0;  // 1.5 * 2^52: a sum with it keeps the nearest integer in its last bits
    const double shifted = turns * 4.0 + shift;
    const double rest = turns * 4.0 - (shifted - shift);
    const double square = rest * rest;
    const double cosine =
        1.0 + square * polynomial(square,
                                  {-1.2337005501361697, 0.2536695079010478, -0.0208634807633407, 0.0009192602745454401,
                                   -2.5202039015998186e-05, 4.710677935267877e-07, -6.32932799095788e-09});
    const double sine =
        rest * 1.5707963267948966 +
        rest * square *
            polynomial(square, {-0.6459640975062463, 0.07969262624616703, -0.004681754135317555, 0.00016044118476017628,
                                -3.5988429248125532e-06, 5.69199093003739e-08, -6.635089171213615e-10});
    const uint64_t quarters = bits_as<uint64_t>(shifted);
    return bits_as<double>(bits_as<uint64_t>((quarters & 1) != 0 ? sine : cosine) ^ ((quarters + 1) & 2) << 62);
}

}  // namespace philox_detail

// In [0, 1), with the 53 bits of a double.
inline double unit_interval(uint64_t bits) {
    return (philox_detail::whole(bits >> 32) * 0x1p21 + philox_detail::whole(bits >> 11 & 0x1fffffu)) * 0x1p-53;
}

#endif

// Either of the two numbers that Box and Muller's transformation makes of two.
DIOPI_HD inline double standard_normal(const RandomBits& bits, int64_t which) {
    const double radius = math::sqrt(-2.0 * philox_detail::log(1.0 - unit_interval(bits.first)));
    return radius * philox_detail::cos_of_turns(unit_interval(bits.second) - 0.25 * static_cast<double>(which));
}

// Of 2^32 words so many drop an element.
DIOPI_HD inline uint64_t dropped_words(double probability) { return static_cast<uint64_t>(probability * 0x1p32 + 0.5); }

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

// A launch's position; of a recorded one each replay finds seed and offset on the device, and a gradient those that its
// forward operator left.
struct ReplayedStream {
    RandomStream stream;     // its offset counts from that on the device, where there is one
    const uint64_t* seed;    // on the device; null: `stream` says it
    const uint64_t* offset;

    DIOPI_HD RandomStream now() const {
        return seed == nullptr ? stream : RandomStream{*seed, *offset + stream.offset};
    }
    DIOPI_HD RandomBits draw(int64_t position) const { return now().draw(position); }
    DIOPI_HD double uniform(int64_t position) const { return now().uniform(position); }
    // As many neighbours as a draw has words share one.
    DIOPI_HD uint32_t word(int64_t position) const {
        return draw(position / RandomBits::kWords).word(static_cast<int>(position % RandomBits::kWords));
    }
};

// Where so many numbers of the generator begin, if its seed and offset lie on the device; else both addresses are null.
inline ReplayedStream reserved_stream(Context ctx, Generator generator, uint64_t numbers) {
    require(generator != nullptr, "a random operator needs a generator");
    ReplayedStream reserved{};
    if (diopiGeneratorReserve == nullptr) return reserved;
    check(diopiGeneratorReserve(ctx, generator, numbers, &reserved.seed, &reserved.offset, &reserved.stream.offset),
          "the generator gives no numbers for a graph");
    for (const uint64_t** word : {&reserved.seed, &reserved.offset}) {
        if (*word != nullptr) *word = static_cast<const uint64_t*>(launch::device_address(*word));
    }
    return reserved;
}

// Advances the generator as the function above does.
inline ReplayedStream next_stream(Context ctx, Generator generator) {
    ReplayedStream stream = reserved_stream(ctx, generator, kStreamStep);
    if (stream.seed == nullptr) stream.stream = next_stream(generator);
    return stream;
}

// What the last launch drew, for a gradient that gets the generator as its forward operator left it.
inline ReplayedStream last_stream(Context ctx, Generator generator) {
    ReplayedStream stream = reserved_stream(ctx, generator, 0);
    if (stream.seed == nullptr) stream.stream = current_stream(generator);
    stream.stream.offset -= kStreamStep;  // modulo 2^64, where it counts from an offset on the device
    return stream;
}

// Seed and offset, for whoever draws from there later.
struct StoreStreamTask {
    uint64_t* words;
    ReplayedStream stream;
    DIOPI_HD void operator()(int64_t) const {
        const RandomStream now = stream.now();
        words[0] = now.seed;
        words[1] = now.offset;
    }
};

}  // namespace diopi::kernels
