// Positions of elements that are not zero: counted block by block, summed up, then written by each block at its place.
#include "positions.h"

#include "core/workspace.h"
#include "reduction/scan.h"
#include "space/index.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

constexpr int64_t kBlock = kRunLength == 1 ? 64 : 4096;

struct Blocks {
    int64_t count;
    int64_t* starts;  // one more than there are blocks: the last is the total
};

template <class T>
DIOPI_HD inline bool is_set(T value) {
    return cast<bool>(value);
}

template <class T>
void count_blocks(Context ctx, const Space<1>& space, const T* values, const Blocks& blocks) {
    for_each_index(
        stream_of(ctx), blocks.count, DIOPI_LAMBDA(int64_t block) {
            const int64_t end = (block + 1) * kBlock < space.numel ? (block + 1) * kBlock : space.numel;
            int64_t count = 0;
            for (int64_t i = block * kBlock; i < end; ++i) count += is_set(values[space.offset(i)]) ? 1 : 0;
            blocks.starts[block + 1] = count;
            if (block == 0) blocks.starts[0] = 0;
        });
    scan(ctx, 1, blocks.count, RunningSums<int64_t>{blocks.starts + 1, 1});
}

template <class T>
void list_blocks(diopiStreamHandle_t stream, const Space<1>& space, const T* values, const Blocks& blocks,
                 int64_t* flat) {
    for_each_index(
        stream, blocks.count, DIOPI_LAMBDA(int64_t block) {
            const int64_t end = (block + 1) * kBlock < space.numel ? (block + 1) * kBlock : space.numel;
            int64_t next = blocks.starts[block];
            for (int64_t i = block * kBlock; i < end; ++i) {
                if (is_set(values[space.offset(i)])) flat[next++] = i;
            }
        });
}

void write_coordinates(diopiStreamHandle_t stream, const TensorView& result, const Positions& positions,
                       const TensorView& shape) {
    int64_t* target = result.as<int64_t>();
    for_each_index(
        stream, positions.count, DIOPI_LAMBDA(int64_t i) {
            int64_t rest = positions.flat[i];
            for (int d = shape.ndim - 1; d >= 0; --d) {
                target[i * shape.ndim + d] = rest % shape.sizes[d];
                rest /= shape.sizes[d];
            }
        });
}

}  // namespace

Positions nonzero_positions(Context ctx, const TensorView& tensor) {
    const diopiStreamHandle_t stream = stream_of(ctx);
    const Space<1> space = space_of(tensor);
    const int64_t blocks_needed = (tensor.numel + kBlock - 1) / kBlock;
    const Blocks blocks{blocks_needed, workspace_of<int64_t>(ctx, blocks_needed + 1)};
    Positions result{nullptr, 0};
    dispatch<Any>(tensor.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        if (tensor.numel == 0) return;
        count_blocks<T>(ctx, space, tensor.as<T>(), blocks);
        check(launch::copy_to_host(stream, &result.count, blocks.starts + blocks.count, sizeof(int64_t)),
              "a count could not be read back from the device");
        auto* flat = workspace_of<int64_t>(ctx, result.count);
        list_blocks<T>(stream, space, tensor.as<T>(), blocks, flat);
        result.flat = flat;
    });
    return result;
}

TensorView coordinates(Context ctx, Tensor* handle, const Positions& positions, const TensorView& shape) {
    const int64_t sizes[] = {positions.count, shape.ndim};
    const TensorView result = allocated(ctx, handle, sizes, 2, diopi_dtype_int64);
    if (result.numel > 0) write_coordinates(stream_of(ctx), result, positions, shape);
    return result;
}

}  // namespace diopi::kernels
