// Random numbers of the host, counted by the contract's seed and offset.
#include <ATen/CPUGeneratorImpl.h>

#include <utility>

#include "aten/call.h"

namespace diopi::aten {
namespace {

constexpr uint64_t kStep = 4;  // one call's share of the offset, a multiple of four as in counter-based generators

// Spreads the bits of seed and offset over one number (the finalizer of SplitMix64).
uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

std::pair<uint64_t, uint64_t> place_of(diopiGeneratorHandle_t handle) {
    uint64_t seed = 0;
    uint64_t offset = 0;
    check(diopiGeneratorGetSeedAndOffset(handle, &seed, &offset), "the generator gives no seed");
    return {seed, offset};
}

at::Generator generator_at(uint64_t seed, uint64_t offset) {
    return at::make_generator<at::CPUGeneratorImpl>(mixed(seed + mixed(offset)));
}

}  // namespace

std::optional<at::Generator> generator(diopiGeneratorHandle_t handle) {
    if (handle == nullptr) return std::nullopt;
    const auto [seed, offset] = place_of(handle);
    check(diopiGeneratorSetSeedAndOffset(handle, seed, offset + kStep), "the generator takes no offset");
    return generator_at(seed, offset);
}

std::optional<at::Generator> generator_again(diopiGeneratorHandle_t handle) {
    if (handle == nullptr) return std::nullopt;
    const auto [seed, offset] = place_of(handle);
    return generator_at(seed, offset - kStep);
}

}  // namespace diopi::aten
