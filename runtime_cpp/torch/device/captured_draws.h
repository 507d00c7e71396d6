// Random numbers of a graph: its kernels load seed and offset from the device, where each replay writes those of the generator.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <vector>

#include "generator.h"

namespace dipu {

class CapturedDraws {
public:
    struct Reserved {
        at::Tensor seed;
        at::Tensor offset;
        uint64_t position;  // from `offset` on
    };

    // Reserves numbers of a generator for each replay. Throws c10::Error if one would draw 2^64 or more.
    Reserved reserve(Generator& generator, uint64_t numbers);

    // Gives the current stream the seeds and offsets of the replay that follows, and moves the generators on by what it draws.
    void begin_replay();

private:
    struct Draw {
        c10::intrusive_ptr<Generator> generator;  // whose lock is taken
        c10::intrusive_ptr<Generator> state;  // its state at the capture, which others may share
        at::Tensor seed;
        at::Tensor offset;
        uint64_t numbers = 0;
    };

    std::vector<Draw> draws_;
};

}  // namespace dipu
