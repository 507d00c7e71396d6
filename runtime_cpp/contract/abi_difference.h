// Compares the ABI record of a vendor library with the headers that this file is compiled against.
#pragma once

#include <diopi/abi.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace diopi {

constexpr uint32_t kMostEntries = 4096;  // more are no entries: each header has one

// The first thing that differs, as the end of a sentence: "a declaration of functions.h differs". Empty if all agrees.
//
// Only what both sides know is compared: a library has no entry for a header of which it uses no function.
inline std::string abi_difference(const diopiAbiRecord_t& theirs) {
    static constexpr diopiAbiEntry_t kOurs[] = {DIOPI_ABI_ALL(DIOPI_ABI_ENTRY)};
    const auto numbers = [](uint64_t there, uint64_t here) {
        return " is " + std::to_string(there) + " there and " + std::to_string(here) + " here";
    };
    if (theirs.size < sizeof(diopiAbiRecord_t)) {
        return "the size of the ABI record" + numbers(theirs.size, sizeof(diopiAbiRecord_t));
    }
    if (theirs.version != DIOPI_VERSION) return "DIOPI_VERSION" + numbers(theirs.version, DIOPI_VERSION);
    if (theirs.entry_size != sizeof(diopiAbiEntry_t)) {
        return "the size of diopiAbiEntry_t" + numbers(theirs.entry_size, sizeof(diopiAbiEntry_t));
    }
    if (theirs.entry_count > kMostEntries || (theirs.entries == nullptr && theirs.entry_count != 0)) {
        return "the ABI record there has no " + std::to_string(theirs.entry_count) + " entries";
    }
    for (const diopiAbiEntry_t& ours : kOurs) {
        for (uint32_t at = 0; at < theirs.entry_count; ++at) {
            const diopiAbiEntry_t& entry = theirs.entries[at];
            if (entry.name == nullptr) return "entry " + std::to_string(at) + " of the ABI record there has no name";
            if (entry.kind != ours.kind || std::strcmp(entry.name, ours.name) != 0 || entry.value == ours.value)
                continue;
            const std::string name = ours.name;
            switch (ours.kind) {
                case diopiAbiSize: return "the size of " + name + numbers(entry.value, ours.value);
                case diopiAbiValues: return "a value of " + name + " differs";
                case diopiAbiDeclarations: return "a declaration of " + name + " differs";
            }
        }
    }
    return {};
}

}  // namespace diopi
