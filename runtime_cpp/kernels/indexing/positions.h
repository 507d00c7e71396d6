// The positions at which a tensor is not zero, listed on the device: the part of an operator whose size depends on
// values.
#pragma once

#include <diopi/diopirt.h>

#include <cstdint>

#include "core/tensor.h"
#include "space/runs.h"

namespace diopi::kernels {

struct Positions {
    const int64_t* flat;  // on the device: row-major positions within the tensor's shape, in ascending order
    int64_t count;
};

// A tensor's elements in row-major order, so many at a time, and how many before each block are not zero.
constexpr int64_t kPositionBlock = kRunLength == 1 ? 16 : 4096;

struct PositionBlocks {
    int64_t count;
    int64_t* starts;  // on the device; one more than there are blocks: the last is the total
};

PositionBlocks position_blocks(Context ctx, const TensorView& tensor);
// Waits for it.
int64_t total_of(Context ctx, const PositionBlocks& blocks);

// Waits for the count, which the shape of a result depends on. A broadcast tensor counts as often as its view shows it.
Positions nonzero_positions(Context ctx, const TensorView& tensor);

// A [count, ndim] tensor of coordinates within `shape`; `handle` receives it where it is an operator's result.
TensorView coordinates(Context ctx, Tensor* handle, const Positions& positions, const TensorView& shape);

}  // namespace diopi::kernels
