// The windows of poolings.
#include "pooling.h"

namespace diopi::kernels {

// Windows of one position in each dimension that the tensors lack.
Areas areas_of(const TensorView& input, const TensorView& output, int rank, const Sliding& lists) {
    const Volume from = volume_of(input, rank, "input"), to = volume_of(output, rank, "output");
    require_same_channels(from, to);
    require(!lists.adaptive || input.numel > 0 || output.numel == 0,
            "an adaptive pooling has no elements to choose from");
    Areas areas{rank, {}};
    for (int axis = 0; axis < kAxes; ++axis) {
        Window& w = areas.axes[axis];
        w = window_of(from.sizes[axis], to.sizes[axis], 1, 1, 0, 1);
        if (lists.adaptive) {
            w.kernel = w.stride = w.output > 0 && w.input % w.output == 0 ? w.input / w.output : 0;
            w.by_stride = Divider(w.stride);
        } else if (axis >= first_axis(rank)) {
            const int64_t size = value_for(lists.kernel, axis, rank, 1, "kernel_size");
            w = window_of(w.input, w.output, size, value_for(lists.stride, axis, rank, size, "stride"),
                          value_for(lists.padding, axis, rank, 0, "padding"),
                          value_for(lists.dilation, axis, rank, 1, "dilation"));
        }
    }
    return areas;
}

}  // namespace diopi::kernels
