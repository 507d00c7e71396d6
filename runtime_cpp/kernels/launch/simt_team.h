// Teams of chips that compilers like nvcc know: lanes of a warp for little work, a block for more.
#pragma once

#include <cstdint>
#include <cstring>

#include "launch/alone.h"

#define DIOPI_LAUNCHER_HAS_TEAMS

namespace diopi::launch {

// The threads of one row of a block: a power of two of them, and all of the block where they are more than a warp.
class Team : public Alone {  // host code compiles kernels, but never runs them
    static constexpr unsigned kWarp = 32;

public:
    static constexpr bool kAlone = false;

    // A team of that many threads is a whole block: it meets at the block's barrier.
    static constexpr bool fills_block(int64_t size) { return size > kWarp; }

#if defined(__CUDA_ARCH__)
    __device__ int64_t rank() const { return threadIdx.x; }
    __device__ int64_t size() const { return blockDim.x; }

    // Joins the values of all threads by a tree that depends on the team's size only; each thread gets the result.
    template <class T, class Join>
    __device__ T reduce(T value, const Join& join) const {
        if (blockDim.x < kWarp) return joined(value, blockDim.x, lanes(), join);
        constexpr unsigned all = 0xffffffffu;  // a mask that the compiler knows costs nothing
        value = joined(value, kWarp, all, join);
        if (blockDim.x == kWarp) return value;
        __shared__ T of_warps[kWarp];
        const unsigned warps = blockDim.x / kWarp;
        if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
        __syncthreads();
        value = joined(of_warps[threadIdx.x % warps], warps, all, join);
        __syncthreads();  // the next reduction writes the same place
        return value;
    }

    // The values of the threads before this one, joined to `none` in an order that depends on the team's size only; `all`
    // receives those of all threads.
    template <class T, class Join>
    __device__ T scan(T value, T none, const Join& join, T* all) const {
        if (blockDim.x < kWarp) return joined_before(value, none, blockDim.x, lanes(), join, all);
        constexpr unsigned every = 0xffffffffu;
        __shared__ T of_warps[kWarp];
        const unsigned warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
        const T own = joined_before(value, none, kWarp, every, join, all);
        if (blockDim.x == kWarp) return own;
        if (threadIdx.x % kWarp == 0) of_warps[warp] = *all;
        __syncthreads();
        const T before = joined_before(of_warps[threadIdx.x % warps], none, warps, every, join, all);
        __syncthreads();  // the next scan writes the same place
        return join(exchanged(before, warp, every), own);
    }

private:
    __device__ static unsigned lane() { return (threadIdx.y * blockDim.x + threadIdx.x) % kWarp; }

    // Of this team, in its warp.
    __device__ static unsigned lanes() { return ((1u << blockDim.x) - 1u) << lane() / blockDim.x * blockDim.x; }

    // Of each `count` neighbouring lanes of a warp; `count` is a power of two, as is the number of a team's threads.
    template <class T, class Join>
    __device__ static T joined(T value, unsigned count, unsigned mask, const Join& join) {
        for (unsigned distance = count / 2; distance > 0; distance /= 2) {
            const T other = exchanged(value, lane() ^ distance, mask);
            // in the same order on both sides, so that all threads get the same bits
            value = (threadIdx.x & distance) == 0 ? join(value, other) : join(other, value);
        }
        return value;
    }

    template <class T, class Join>
    __device__ static T joined_before(T value, T none, unsigned count, unsigned mask, const Join& join, T* all) {
        const unsigned own = lane(), rank = own % count;
        for (unsigned distance = 1; distance < count; distance *= 2) {
            const T other = exchanged(value, rank < distance ? own : own - distance, mask);
            if (rank >= distance) value = join(other, value);
        }
        *all = exchanged(value, own - rank + count - 1, mask);
        const T before = exchanged(value, rank == 0 ? own : own - 1, mask);
        return rank == 0 ? none : before;
    }

    // What the lane `from` of the warp has.
    template <class T>
    __device__ static T exchanged(const T& value, unsigned from, unsigned mask) {
        constexpr int words = (sizeof(T) + 3) / 4;
        unsigned bits[words] = {};
        memcpy(bits, &value, sizeof(T));
#pragma unroll
        for (int k = 0; k < words; ++k) bits[k] = __shfl_sync(mask, bits[k], static_cast<int>(from));
        T other;
        memcpy(&other, bits, sizeof(T));
        return other;
    }
#endif
};

constexpr int kLargestTeam = 512;

// Threads for each of n indices: eight elements each, or four while that many do not keep the chip busy. More than a
// warp meet at a barrier, so they come where a warp's threads had sixteen, or next to nothing runs beside them.
inline int team_size(int64_t n, int64_t work) {
    constexpr int64_t busy = 1 << 18, warp = 32;
    const auto grows = [&](int size) {
        if (size * 8 < work) return true;
        return size * 4 <= work && n * size < (size < warp ? busy : work < 16 * warp ? busy / 128 : busy / 8);
    };
    int size = 1;
    while (size < kLargestTeam && grows(size)) size *= 2;
    return size;
}

}  // namespace diopi::launch
