// What kernels of vendor cuda need of CUDA, on a host: the threads of a block take turns, each until it meets the others.
// All threads of a block come by the same calls that need others.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "fibers.h"

#define __device__
#define __global__
#define __shared__
#define __launch_bounds__(threads)

struct dim3 {
    unsigned x = 1, y = 1;
    dim3() = default;
    explicit dim3(unsigned columns, unsigned rows = 1) : x(columns), y(rows) {}
};
struct float2 {
    float x, y;
};
using cudaStream_t = void*;
enum cudaError_t { cudaSuccess };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 9, cudaDevAttrMaxSharedMemoryPerBlockOptin = 232448 };

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
    return cudaSuccess;
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t) { return ""; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) { return *value = which, cudaSuccess; }

namespace emulated {

constexpr int kWarp = 32, kMostThreads = 128;
using Block = diopi::launch::detail::Fibers<kMostThreads>;

inline dim3 block_index, blocks;
// Two by turns: who writes the next values knows that all have read those before the last.
inline struct Exchange {
    uint64_t words[6];
} exchanged[2][kMostThreads];
inline int turns[kMostThreads];

inline dim3 thread_index() { return dim3(static_cast<unsigned>(Block::running()->rank)); }
inline float as_float(uint64_t bits) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    return std::memcpy(&value, &word, sizeof value), value;
}
inline uint32_t as_bits(float value) {
    uint32_t bits;
    return std::memcpy(&bits, &value, sizeof bits), bits;
}

// What this warp's threads give, when all of a block have.
inline const Exchange* given(const Exchange& mine) {
    Block& block = *Block::running();
    const int rank = block.rank, turn = turns[rank]++ % 2;
    exchanged[turn][rank] = mine;
    block.meet();
    return exchanged[turn] + rank / kWarp * kWarp;
}

template <class Problem>
void launch(void (*kernel)(Problem), dim3 grid, int threads, cudaStream_t, const Problem& problem) {
    static Block block;
    blocks = grid;
    for (block_index.y = 0; block_index.y < grid.y; ++block_index.y) {
        for (block_index.x = 0; block_index.x < grid.x; ++block_index.x) block.run(threads, [&] { kernel(problem); });
    }
}

// sums += a b of 16 x 8 and 8 x 8, of which the last 13 bits are ignored.
inline void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    const Exchange* const warp = given({{a[0], a[1], a[2], a[3], b[0], b[1]}});
    const auto factor = [&](int lane, int word) {
        return static_cast<double>(as_float(warp[lane].words[word] & 0xffffe000u));
    };
    const int lane = Block::running()->rank % kWarp;
    for (int e = 0; e < 4; ++e) {
        const int row = lane / 4, below = e / 2, column = lane % 4 * 2 + e % 2;
        double sum = 0;
        for (int k = 0; k < 8; ++k)
            sum += factor(row * 4 + k % 4, k / 4 * 2 + below) * factor(column * 4 + k % 4, 4 + k / 4);
        sums[e] += static_cast<float>(sum);
    }
}
inline void load_four(float* to, const float* from, bool exists) {
    exists ? std::memcpy(to, from, 16) : std::memset(to, 0, 16);
}
inline uint32_t rounded(float value) { return (as_bits(value) + 0x1000u) & 0xffffe000u; }

}  // namespace emulated

#define threadIdx emulated::thread_index()
#define blockIdx emulated::block_index
#define gridDim emulated::blocks

inline void __syncthreads() { emulated::Block::running()->meet(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
    static_assert(sizeof(T) <= 8);
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    const int lane = emulated::Block::running()->rank % emulated::kWarp;
    word = emulated::given({{word}})[lane ^ mask].words[0];
    return std::memcpy(&value, &word, sizeof value), value;
}
inline uint32_t __float_as_uint(float value) { return emulated::as_bits(value); }
inline float __uint_as_float(uint32_t bits) { return emulated::as_float(bits); }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
