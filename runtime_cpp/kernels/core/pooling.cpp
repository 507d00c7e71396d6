// The windows of poolings.
#include "pooling.h"

namespace diopi::kernels {
namespace {

// Windows of one position in each dimension, also in those that the tensors lack.
Areas areas_of(const TensorView& input, const TensorView& output, int rank) {
    const Volume from = volume_of(input, rank, "input"), to = volume_of(output, rank, "output");
    require_same_channels(from, to);
    Areas areas{rank, {}};
    for (int axis = 0; axis < kAxes; ++axis) areas.axes[axis] = window_of(from.sizes[axis], to.sizes[axis], 1, 1, 0, 1);
    return areas;
}

}  // namespace

Areas adaptive_areas(const TensorView& input, const TensorView& output, int rank) {
    Areas areas = areas_of(input, output, rank);
    require(input.numel > 0 || output.numel == 0, "an adaptive pooling has no elements to choose from");
    for (Window& w : areas.axes) {
        w.kernel = w.stride = w.output > 0 && w.input % w.output == 0 ? w.input / w.output : 0;
        w.by_stride = Divider(w.stride);
    }
    return areas;
}

Areas sliding_areas(const TensorView& input, const TensorView& output, int rank, const Sliding& lists) {
    Areas areas = areas_of(input, output, rank);
    for (int axis = first_axis(rank); axis < kAxes; ++axis) {
        const int64_t size = value_for(lists.kernel, axis, rank, 1, "kernel_size");
        areas.axes[axis] = window_of(areas.axes[axis].input, areas.axes[axis].output, size,
                                     value_for(lists.stride, axis, rank, size, "stride"),
                                     value_for(lists.padding, axis, rank, 0, "padding"),
                                     value_for(lists.dilation, axis, rank, 1, "dilation"));
    }
    return areas;
}

}  // namespace diopi::kernels
