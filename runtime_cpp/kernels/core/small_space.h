// SmallSpace: a Space of less than 2^31 elements and offsets, in 32-bit arithmetic and without division.
#ifndef DIOPI_KERNELS_CORE_SMALL_SPACE_H_
#define DIOPI_KERNELS_CORE_SMALL_SPACE_H_

#include <cstdint>

#include "divider.h"
#include "host_device.h"
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
        for (int d = ndim - 1; d > 0; --d) {
            const uint32_t quotient = sizes[d].quotient(index);
            const auto position = static_cast<int32_t>(index - quotient * sizes[d].size);
            for (int n = 0; n < N; ++n) at[n] += position * strides[n][d];
            index = quotient;
        }
        Offsets<N> result;
        for (int n = 0; n < N; ++n)
            result.at[n] = at[n] + (ndim > 0 ? static_cast<int32_t>(index) * strides[n][0] : 0);
        return result;
    }
};

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_SMALL_SPACE_H_
