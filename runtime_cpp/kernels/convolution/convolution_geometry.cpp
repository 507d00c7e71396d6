// Checks of what a convolution is called with.
#include "convolution_geometry.h"

#include "space/packed_rows.h"
#include "space/volume.h"

namespace diopi::kernels {
namespace {

// The value for one of three axes; a plane has no depth.
int64_t value_at(const Sizes& list, int axis, int rank, int64_t otherwise, const char* name) {
    return axis < first_axis(rank) ? otherwise : value_for(list, axis, rank, otherwise, name);
}

void require_extent(int64_t extent, int64_t expected) {
    require(extent == expected, "the output of this convolution is %lld wide, expected %lld", extent, expected);
}

}  // namespace

TensorView volumes_of(const TensorView& tensor, int rank) {
    require(tensor.ndim == rank + 1 || tensor.ndim == rank + 2, "expected %d or %d dimensions, got %d", rank + 1,
            rank + 2, tensor.ndim);
    const TensorView batch = tensor.ndim == rank + 1 ? with_dim(tensor, 0, 1, 0) : tensor;
    return rank == 2 ? with_dim(batch, 2, 1, 0) : batch;
}

ConvolutionShape shape_of(const TensorView& input, const TensorView& weight, const TensorView& output,
                          const Geometry& g) {
    Window axes[3];
    for (int axis = 0; axis < 3; ++axis) {
        Window& w = axes[axis];
        w = window_of(input.sizes[2 + axis], output.sizes[2 + axis], weight.sizes[2 + axis],
                      value_at(g.stride, axis, g.rank, 1, "stride"), value_at(g.padding, axis, g.rank, 0, "padding"),
                      value_at(g.dilation, axis, g.rank, 1, "dilation"));
        const int64_t reach = w.dilation * (w.kernel - 1) + 1 - 2 * w.padding;  // of a window into the input
        if (g.output_padding == nullptr) {
            require_extent(w.output, w.input < reach ? 0 : (w.input - reach) / w.stride + 1);
        } else {
            const int64_t more = value_at(*g.output_padding, axis, g.rank, 0, "output_padding");
            require(more >= 0 && (more < w.stride || more < w.dilation),
                    "an output padding of %lld is not smaller than the stride or the dilation", more);
            require_extent(w.input, (w.output - 1) * w.stride + reach + more);
        }
    }
    const ConvolutionShape shape{
        {axes[0], axes[1], axes[2]}, input.sizes[0], input.sizes[1], weight.sizes[0], g.groups};
    require(g.groups > 0 && shape.channels == weight.sizes[1] * g.groups && shape.filters % g.groups == 0 &&
                output.sizes[1] == shape.filters,
            "a weight of %lld by %lld channels in %lld groups does not fit images of %lld and %lld channels",
            weight.sizes[0], weight.sizes[1], g.groups, input.sizes[1], output.sizes[1]);
    require(output.sizes[0] == shape.batch, "a convolution of %lld images gives as many, not %lld", shape.batch,
            output.sizes[0]);
    return shape;
}

TensorView channels_last(const TensorView& tensor) {
    return transposed(transposed(transposed(tensor, 1, 2), 2, 3), 3, 4);
}

TensorView per_volume(const TensorView& channels) {
    return with_dim(with_dim(with_dim(channels, 1, 1, 0), 2, 1, 0), 3, 1, 0);
}

TensorView target_for(Context ctx, const TensorView& tensor, diopiDtype_t dtype, Memory memory) {
    const TensorView seen = seen_in(tensor, memory);
    const bool serves = seen.dtype == dtype && seen.contiguous() && (Team::kAlone || starts_pack(seen.data));
    return serves ? seen : temporary_like(ctx, seen, dtype);
}

}  // namespace diopi::kernels
