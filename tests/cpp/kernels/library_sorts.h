// A launcher of plain loops that has teams, and sorts by a library: the standard one.
#pragma once

// clang-format off
#include "host_teams.h"
#include "launch/library_sort.h"
// clang-format on

#include <algorithm>

#define DIOPI_LAUNCHER_HAS_SORTS

namespace diopi::launch {

inline diopiError_t sort_places(diopiStreamHandle_t, const LibrarySort& sort, int64_t* places, const Workspace&) {
    const auto key = [&](int64_t i) {
        uint64_t bits = 0;
        memcpy(&bits, static_cast<const char*>(sort.keys) + i * sort.key_bytes, static_cast<size_t>(sort.key_bytes));
        return bits << (64 - sort.bits);
    };
    for (int64_t i = 0; i < sort.lines * sort.length; ++i) places[i] = i;
    for (int64_t line = 0; line < sort.lines; ++line) {
        int64_t* const first = places + line * sort.length;
        std::stable_sort(first, first + sort.length, [&](int64_t a, int64_t b) { return key(a) < key(b); });
    }
    return diopiSuccess;
}

}  // namespace diopi::launch
