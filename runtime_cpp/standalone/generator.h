// What a generator handle of standalone points to: the seed and the offset of a counter-based random generator.
#pragma once

#include <cstdint>

struct diopiGenerator {
    uint64_t seed = 0;
    uint64_t offset = 0;  // how many numbers of the sequence are used up
};
