// Random numbers of the host, counted by the contract's seed and offset.
#include <ATen/CPUGeneratorImpl.h>

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

}  // namespace

std::optional<at::Generator> generator(diopiGeneratorHandle_t handle) {
    if (handle == nullptr) return std::nullopt;
    uint64_t seed = 0;
    uint64_t offset = 0;
    check(diopiGeneratorGetSeedAndOffset(handle, &seed, &offset), "the generator gives no seed");
    check(diopiGeneratorSetSeedAndOffset(handle, seed, offset + kStep), "the generator takes no offset");
    return at::make_generator<at::CPUGeneratorImpl>(mixed(seed + mixed(offset)));
}

}  // namespace diopi::aten
