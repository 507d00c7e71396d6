// SmallSpace: a Space of less than 2^31 elements and offsets, in 32-bit arithmetic and without division.
#pragma once

#include <cstdint>

#include "core/device_code.h"
#include "core/host_device.h"
#include "divider.h"
#include "index.h"

namespace diopi::kernels {

template <int N>
struct SmallSpace {
    int32_t ndim = 0;
    uint32_t numel = 0;
    FixedDivisor sizes[kMaxDims];
    int32_t strides[N][kMaxDims];

    static bool fits(const Space<N>& space) {
        constexpr int64_t limit = INT32_MAX;
        if (space.numel > limit) return false;
        for (int n = 0; n < N; ++n) {
            int64_t reach = 0;
            for (int d = 0; d < space.ndim; ++d) {
                const int64_t stride = space.strides[n][d];
                reach += (space.sizes[d] - 1) * (stride < 0 ? -stride : stride);
            }
            if (reach > limit) return false;
        }
        return true;
    }

    SmallSpace() = default;
    // fits() must hold.
    explicit SmallSpace(const Space<N>& space) : ndim(space.ndim), numel(static_cast<uint32_t>(space.numel)) {
        for (int d = 0; d < ndim; ++d) {
            sizes[d] = FixedDivisor(space.sizes[d]);
            for (int n = 0; n < N; ++n) strides[n][d] = static_cast<int32_t>(space.strides[n][d]);
        }
    }

    DIOPI_HD Offsets<N> offsets(uint32_t index) const {
        int32_t at[N] = {};
        DIOPI_KEEP_LOOP
        for (int d = ndim - 1; d > 0; --d) {
            const uint32_t quotient = sizes[d].quotient(index);
            const auto position = static_cast<int32_t>(index - quotient * sizes[d].size);
            for (int n = 0; n < N; ++n) at[n] += position * strides[n][d];
            index = quotient;
        }
        Offsets<N> result;
        for (int n = 0; n < N; ++n) result.at[n] = at[n] + (ndim > 0 ? static_cast<int32_t>(index) * strides[n][0] : 0);
        return result;
    }
};

// Whether operand n, which begins at `data`, is of packs of `width` neighbours along the fastest dimension, each of which
// is one access to `bytes` of its own alignment.
template <int N>
bool has_packs(const Space<N>& space, int n, const void* data, int64_t width, uintptr_t bytes) {
    const int last = space.ndim - 1;
    bool packs = reinterpret_cast<uintptr_t>(data) % bytes == 0 && (last < 0 || space.strides[n][last] == 1);
    for (int d = 0; d < last; ++d) packs = packs && space.strides[n][d] % width == 0;
    return packs;
}

// Makes packs of `width` elements, and a rest, the positions along the fastest dimension; `numel` still counts elements.
template <int N>
void divide_into_packs(Space<N>& space, int64_t width) {
    const int last = space.ndim - 1;
    if (last < 0) return;
    for (int n = 0; n < N; ++n) space.strides[n][last] *= width;
    space.sizes[last] = (space.sizes[last] + width - 1) / width;
}

// Calls part(space, offset of each operand) for parts of `space` that fit 32-bit arithmetic, until one fails.
template <int N, class Part>
diopiError_t for_small_parts(const Space<N>& space, const Offsets<N>& offsets, const Part& part) {
    if (SmallSpace<N>::fits(space)) return part(space, offsets);
    int longest = 0;
    for (int d = 1; d < space.ndim; ++d) longest = space.sizes[d] > space.sizes[longest] ? d : longest;
    constexpr int64_t whole = 64;  // of packs, so that the halves are as well aligned as the whole
    int64_t middle = (space.sizes[longest] + 1) / 2;
    if (middle > whole) middle = middle / whole * whole;
    Space<N> half = space;
    Offsets<N> shifted = offsets;
    for (int64_t start = 0; start < space.sizes[longest]; start += middle) {
        const int64_t left = space.sizes[longest] - start;
        half.sizes[longest] = left < middle ? left : middle;
        half.numel = space.numel / space.sizes[longest] * half.sizes[longest];
        for (int n = 0; n < N; ++n) shifted.at[n] = offsets.at[n] + start * space.strides[n][longest];
        const diopiError_t status = for_small_parts(half, shifted, part);
        if (status != diopiSuccess) return status;
    }
    return diopiSuccess;
}

}  // namespace diopi::kernels
