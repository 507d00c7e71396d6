// Sorts by a vendor's library, for launchers that define DIOPI_LAUNCHER_HAS_SORTS.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "library_product.h"

namespace diopi::launch {

// Unsigned keys of 1, 2, 4 or 8 bytes, of which the low `bits` may differ, in lines that lie one behind the other.
struct LibrarySort {
    int key_bytes;
    int bits;
    int64_t lines, length;
    const void* keys;
};

// Lists in `places` where the keys of each line stand, in [0, lines * length), in ascending order of the keys; equal
// ones stay in order.
diopiError_t sort_places(diopiStreamHandle_t stream, const LibrarySort& sort, int64_t* places,
                         const Workspace& workspace);

}  // namespace diopi::launch
