// Positions of elements that are not zero: counted block by block, summed up, then written by each block at its place.
#include "positions.h"

#include "core/workspace.h"
#include "reduction/scan.h"
#include "space/index.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

template <class T>
void count_blocks(Context ctx, const Space<1>& space, const T* values, const PositionBlocks& blocks) {
    for_each_index(
        stream_of(ctx), blocks.count, DIOPI_LAMBDA(int64_t block) {
            int64_t count = 0;
            for (int64_t i = block * kPositionBlock; i < (block + 1) * kPositionBlock && i < space.numel; ++i)
                count += cast<bool>(values[space.offset(i)]) ? 1 : 0;
            blocks.starts[block + 1] = count;
            if (block == 0) blocks.starts[0] = 0;
        });
    scan(ctx, 1, blocks.count, RunningSums<int64_t>{blocks.starts + 1, 1});
}

template <class T>
void list_blocks(diopiStreamHandle_t stream, const Space<1>& space, const T* values, const PositionBlocks& blocks,
                 int64_t* flat) {
    for_each_index(
        stream, blocks.count, DIOPI_LAMBDA(int64_t block) {
            int64_t next = blocks.starts[block];
            for (int64_t i = block * kPositionBlock; i < (block + 1) * kPositionBlock && i < space.numel; ++i) {
                if (cast<bool>(values[space.offset(i)])) flat[next++] = i;
            }
        });
}

}  // namespace

PositionBlocks position_blocks(Context ctx, const TensorView& tensor) {
    const int64_t count = (tensor.numel + kPositionBlock - 1) / kPositionBlock;
    const PositionBlocks blocks{count, workspace_of<int64_t>(ctx, count + 1)};
    dispatch<Any>(tensor.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        if (count > 0) count_blocks<T>(ctx, space_of(tensor), tensor.as<T>(), blocks);
    });
    return blocks;
}

int64_t total_of(Context ctx, const PositionBlocks& blocks) {
    int64_t total = 0;
    if (blocks.count > 0)
        check(launch::copy_to_host(stream_of(ctx), &total, blocks.starts + blocks.count, sizeof(int64_t)),
              "a count could not be read back from the device");
    return total;
}

Positions nonzero_positions(Context ctx, const TensorView& tensor) {
    const PositionBlocks blocks = position_blocks(ctx, tensor);
    const int64_t total = total_of(ctx, blocks);
    auto* const flat = workspace_of<int64_t>(ctx, total);
    dispatch<Any>(tensor.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        list_blocks<T>(stream_of(ctx), space_of(tensor), tensor.as<T>(), blocks, flat);
    });
    return {flat, total};
}

TensorView coordinates(Context ctx, Tensor* handle, const Positions& positions, const TensorView& shape) {
    const int64_t sizes[] = {positions.count, shape.ndim};
    const TensorView result = allocated(ctx, handle, sizes, 2, diopi_dtype_int64);
    int64_t* target = result.as<int64_t>();
    for_each_index(
        stream_of(ctx), positions.count, DIOPI_LAMBDA(int64_t i) {
            int64_t rest = positions.flat[i];
            for (int d = shape.ndim - 1; d >= 0; --d) {
                target[i * shape.ndim + d] = rest % shape.sizes[d];
                rest /= shape.sizes[d];
            }
        });
    return result;
}

}  // namespace diopi::kernels
