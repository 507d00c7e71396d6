// Sorts by CUB: a block for each line that fits into one, else all lines together, digit by digit.
#include <cub/block/block_radix_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include <cstdint>

#include "core/launcher.h"

namespace diopi::launch {
namespace {

constexpr int64_t kLongestOfBlock = 2048;

template <class Key, int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads)
    sort_by_blocks(const Key* keys, int bits, int64_t lines, int length, int64_t* places) {
    using Sort = cub::BlockRadixSort<Key, kThreads, kItems, int>;
    __shared__ typename Sort::TempStorage storage;
    for (int64_t line = blockIdx.x; line < lines; line += gridDim.x) {
        const int64_t first = line * length;
        Key own[kItems];
        int from[kItems];
        for (int k = 0; k < kItems; ++k) {
            from[k] = static_cast<int>(threadIdx.x) * kItems + k;
            own[k] = from[k] < length ? keys[first + from[k]] : static_cast<Key>(~Key(0));  // stays behind all others
        }
        Sort(storage).SortBlockedToStriped(own, from, 0, bits);
        for (int k = 0; k < kItems; ++k) {
            const int to = k * kThreads + static_cast<int>(threadIdx.x);
            if (to < length) places[first + to] = first + from[k];
        }
        __syncthreads();  // the next line takes the same storage
    }
}

template <class Key, int kThreads, int kItems>
diopiError_t sort_short(cudaStream_t stream, const LibrarySort& sort, int64_t* places) {
    const auto blocks = static_cast<unsigned>(sort.lines < INT32_MAX ? sort.lines : INT32_MAX);
    sort_by_blocks<Key, kThreads, kItems><<<blocks, kThreads, 0, stream>>>(
        static_cast<const Key*>(sort.keys), sort.bits, sort.lines, static_cast<int>(sort.length), places);
    return detail::status(cudaGetLastError());
}

struct CountUp {
    int64_t* places;
    __host__ __device__ void operator()(int64_t i) const { places[i] = i; }
};

struct ListLines {
    const int64_t* places;
    int64_t length;
    uint32_t* lines;
    __host__ __device__ void operator()(int64_t i) const { lines[i] = static_cast<uint32_t>(places[i] / length); }
};

// Each place moves with its key.
template <class Key>
diopiError_t sort_pairs(cudaStream_t stream, int64_t count, int bits, const Key* keys, const int64_t* places,
                        int64_t* sorted, const Workspace& workspace) {
    auto* const sorted_keys = static_cast<Key*>(workspace(count * static_cast<int64_t>(sizeof(Key))));
    void* room = nullptr;
    size_t bytes = 0;
    for (int step = 0; step < 2; ++step) {  // CUB says first how much room it takes
        const cudaError_t error =
            cub::DeviceRadixSort::SortPairs(room, bytes, keys, sorted_keys, places, sorted, count, 0, bits, stream);
        if (error != cudaSuccess) return diopiErrorOccurred;
        if (step == 0) room = workspace(static_cast<int64_t>(bytes));
    }
    return diopiSuccess;
}

// All keys at once; then by line, which leaves the keys of a line in order.
template <class Key>
diopiError_t sort_long(diopiStreamHandle_t handle, const LibrarySort& sort, int64_t* places,
                       const Workspace& workspace) {
    const auto stream = static_cast<cudaStream_t>(handle);
    const int64_t count = sort.lines * sort.length;
    auto* const other = static_cast<int64_t*>(workspace(count * static_cast<int64_t>(sizeof(int64_t))));
    const bool several = sort.lines > 1;
    int64_t* const from = several ? places : other;
    int64_t* const to = several ? other : places;
    diopiError_t status = parallel_for(handle, count, CountUp{from});
    if (status != diopiSuccess) return status;
    status = sort_pairs(stream, count, sort.bits, static_cast<const Key*>(sort.keys), from, to, workspace);
    if (status != diopiSuccess || !several) return status;
    auto* const lines = static_cast<uint32_t*>(workspace(count * static_cast<int64_t>(sizeof(uint32_t))));
    status = parallel_for(handle, count, ListLines{other, sort.length, lines});
    if (status != diopiSuccess) return status;
    int bits = 1;
    while ((sort.lines - 1) >> bits != 0) ++bits;
    return sort_pairs(stream, count, bits, lines, other, places, workspace);
}

template <class Key>
diopiError_t sort_keys(diopiStreamHandle_t handle, const LibrarySort& sort, int64_t* places,
                       const Workspace& workspace) {
    const auto stream = static_cast<cudaStream_t>(handle);
    if (sort.length <= 128) return sort_short<Key, 32, 4>(stream, sort, places);
    if (sort.length <= 512) return sort_short<Key, 128, 4>(stream, sort, places);
    if (sort.length <= kLongestOfBlock) return sort_short<Key, 256, 8>(stream, sort, places);
    return sort_long<Key>(handle, sort, places, workspace);
}

}  // namespace

diopiError_t sort_places(diopiStreamHandle_t stream, const LibrarySort& sort, int64_t* places,
                         const Workspace& workspace) {
    if (sort.lines == 0 || sort.length == 0) return diopiSuccess;
    switch (sort.key_bytes) {
        case 1: return sort_keys<uint8_t>(stream, sort, places, workspace);
        case 2: return sort_keys<uint16_t>(stream, sort, places, workspace);
        case 4: return sort_keys<uint32_t>(stream, sort, places, workspace);
        default: return sort_keys<uint64_t>(stream, sort, places, workspace);
    }
}

}  // namespace diopi::launch
