// Space: an index space with one stride per operand and dimension, which turns a flat index into element offsets.
#pragma once

#include <cstdint>

#include "core/device_code.h"
#include "core/host_device.h"
#include "core/tensor.h"
#include "divider.h"

namespace diopi::kernels {

template <int N>
struct Offsets {
    int64_t at[N];
    DIOPI_HD int64_t operator[](int operand) const { return at[operand]; }
};

// Dimension ndim - 1 varies fastest. An empty shape (a 0-d tensor) has ndim 0 and numel 1.
template <int N>
struct Space {
    int32_t ndim = 0;
    int64_t numel = 1;
    int64_t sizes[kMaxDims];
    int64_t strides[N][kMaxDims];
    FixedDivisor divisors[kMaxDims];  // of coalesce(), which count as long as they fit the sizes

    DIOPI_HD Offsets<N> offsets(int64_t index) const { return offsets_within(index, ndim); }

    // Of the first element of a run of the fastest dimension.
    DIOPI_HD Offsets<N> run_offsets(int64_t run) const { return offsets_within(run, ndim - 1); }

    // Of an index of the first `dims` dimensions.
    DIOPI_HD Offsets<N> offsets_within(int64_t index, int dims) const {
        Offsets<N> result;
        for (int n = 0; n < N; ++n) result.at[n] = 0;
        DIOPI_KEEP_LOOP
        for (int d = dims - 1; d >= 0; --d) {
            const int64_t quotient = d == 0 ? 0 : divided(index, d);
            const int64_t position = index - quotient * sizes[d];
            for (int n = 0; n < N; ++n) result.at[n] += position * strides[n][d];
            index = quotient;
        }
        return result;
    }

    DIOPI_HD int64_t divided(int64_t index, int d) const {
        const bool known = index <= INT32_MAX && divisors[d].size == sizes[d];
        return known ? divisors[d].quotient(static_cast<uint32_t>(index)) : index / sizes[d];
    }

    DIOPI_HD int64_t offset(int64_t index) const { return offsets(index).at[0]; }

    // The size and stride of the fastest dimension, for kernels that work row by row.
    DIOPI_HD int64_t inner_size() const { return ndim == 0 ? 1 : sizes[ndim - 1]; }
    DIOPI_HD int64_t inner_stride(int operand) const { return ndim == 0 ? 1 : strides[operand][ndim - 1]; }

    // True when each operand is one run of memory: offset == index.
    bool contiguous() const {
        if (ndim == 0) return true;
        if (ndim > 1) return false;
        for (int n = 0; n < N; ++n) {
            if (strides[n][0] != 1) return false;
        }
        return true;
    }

    void append(int64_t size, const int64_t (&stride)[N]) {
        require(ndim < kMaxDims, "an index space has more than %d dimensions", kMaxDims);
        sizes[ndim] = size;
        for (int n = 0; n < N; ++n) strides[n][ndim] = stride[n];
        numel *= size;
        ++ndim;
    }
};

// Neighbouring dimensions that every operand steps through evenly become one; those of size one vanish.
template <int N>
void coalesce(Space<N>& space) {
    int kept = 0;
    for (int d = 0; d < space.ndim; ++d) {
        if (space.sizes[d] == 1) continue;
        bool joins = kept > 0;
        for (int n = 0; joins && n < N; ++n) joins = space.strides[n][kept - 1] == space.strides[n][d] * space.sizes[d];
        const int target = joins ? kept - 1 : kept++;
        space.sizes[target] = joins ? space.sizes[target] * space.sizes[d] : space.sizes[d];
        for (int n = 0; n < N; ++n) space.strides[n][target] = space.strides[n][d];
    }
    space.ndim = kept;
    for (int d = 0; d < kept; ++d) {
        if (space.sizes[d] > 0 && space.sizes[d] <= INT32_MAX) space.divisors[d] = FixedDivisor(space.sizes[d]);
    }
}

// Sorts dimensions by the first operand's strides, largest first, where the order of visits does not matter:
// operands that are dense in any common order (channels last, transposed) then coalesce into one run.
template <int N>
void order_by_stride(Space<N>& space) {
    for (int d = 1; d < space.ndim; ++d) {
        for (int k = d; k > 0 && space.strides[0][k - 1] < space.strides[0][k]; --k) {
            for (int n = 0; n < N; ++n) {
                const int64_t stride = space.strides[n][k];
                space.strides[n][k] = space.strides[n][k - 1];
                space.strides[n][k - 1] = stride;
            }
            const int64_t size = space.sizes[k];
            space.sizes[k] = space.sizes[k - 1];
            space.sizes[k - 1] = size;
        }
    }
}

enum class Visit { in_order, any_order };

// The space of `shape` with each operand broadcast to it. Fails when an operand does not broadcast.
template <int N>
Space<N> broadcast_space(const TensorView& shape, const TensorView* const (&operands)[N],
                         Visit visit = Visit::in_order) {
    Space<N> space;
    space.ndim = shape.ndim;
    space.numel = shape.numel;
    for (int d = 0; d < shape.ndim; ++d) space.sizes[d] = shape.sizes[d];
    for (int n = 0; n < N; ++n) {
        const TensorView& operand = *operands[n];
        require(operand.ndim <= shape.ndim, "an operand of %d dimensions does not broadcast to %d", operand.ndim,
                shape.ndim);
        const int lead = shape.ndim - operand.ndim;
        for (int d = 0; d < shape.ndim; ++d) {
            const int64_t size = d < lead ? 1 : operand.sizes[d - lead];
            require(size == shape.sizes[d] || size == 1, "size %lld does not broadcast to %lld in dimension %d", size,
                    shape.sizes[d], d);
            space.strides[n][d] = size == 1 ? 0 : operand.strides[d - lead];
        }
    }
    if (visit == Visit::any_order) order_by_stride(space);
    coalesce(space);
    return space;
}

template <int N>
Space<N> broadcast_space(const TensorView& shape, const TensorView (&operands)[N], Visit visit = Visit::in_order) {
    const TensorView* pointers[N];
    for (int n = 0; n < N; ++n) pointers[n] = &operands[n];
    return broadcast_space<N>(shape, pointers, visit);
}

// The elements of one tensor in row-major order of its indices.
inline Space<1> space_of(const TensorView& tensor) {
    const TensorView* const operands[1] = {&tensor};
    return broadcast_space<1>(tensor, operands);
}

}  // namespace diopi::kernels
