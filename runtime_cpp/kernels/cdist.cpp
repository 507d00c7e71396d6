// The distances between the rows of two matrices, batch by batch, and their gradient.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "core/index.h"
#include "core/vector_norm.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// [..., rows, width] or [..., rows, columns] without one of the last two dimensions, which is walked instead.
struct Walked {
    TensorView others;
    int64_t stride;
};

// `from_last`: 1 for the last dimension, 2 for that before.
Walked walked(const TensorView& tensor, int from_last) {
    const int dim = tensor.ndim - from_last;
    TensorView others = tensor;
    others.sizes[dim] = 1;
    return {recounted(others), tensor.strides[dim]};
}

struct DistanceTask {
    Space<3> space;  // out, input1, input2
    TensorView out, input1, input2;
    int64_t width, stride1, stride2;
    NormFold fold;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<3> at = space.offsets(i);
        double state = fold.start();
        for (int64_t k = 0; k < width; ++k) {
            state = fold.step(state, load_as<double>(input1, at.at[1] + k * stride1) -
                                         load_as<double>(input2, at.at[2] + k * stride2));
        }
        store_as(out, at.at[0], fold.finish(state, width));
    }
};

struct DistanceGradientTask {
    Space<5> space;  // grad_input, input1, input2, grad_output, distances
    TensorView operands[5];
    int64_t rows, input_stride, gradient_stride, distance_stride;
    NormFold fold;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<5> at = space.offsets(i);
        const double value = load_as<double>(operands[1], at.at[1]);
        double sum = 0;
        for (int64_t j = 0; j < rows; ++j) {
            const double difference = value - load_as<double>(operands[2], at.at[2] + j * input_stride);
            const double distance = load_as<double>(operands[4], at.at[4] + j * distance_stride);
            sum += load_as<double>(operands[3], at.at[3] + j * gradient_stride) *
                   norm_slope(fold, difference, distance);
        }
        store_as(operands[0], at.at[0], sum);
    }
};

void require_points(const TensorView& input1, const TensorView& input2) {
    require(input1.ndim >= 2 && input2.ndim >= 2 && input1.ndim < kMaxDims && input2.ndim < kMaxDims,
            "cdist takes two batches of matrices");
    require(input1.sizes[input1.ndim - 1] == input2.sizes[input2.ndim - 1], "cdist takes rows of the same length");
}

}  // namespace

// Differences are always taken element by element: right for every compute_mode.
diopiError_t diopiCdist(Context ctx, Tensor out, ConstTensor input1, ConstTensor input2, double p, const int64_t*) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        const TensorView left = required_view(input1, "input1");
        const TensorView right = required_view(input2, "input2");
        for (const TensorView& operand : {result, left, right}) require_storable(operand);
        require_points(left, right);
        const Walked rows = walked(left, 1);
        const Walked columns = walked(right, 1);
        const TensorView operands[3] = {result, rows.others, matrix_transposed(columns.others)};
        for_each(ctx, result.numel,
                 DistanceTask{broadcast_space<3>(result, operands), result, left, right, left.sizes[left.ndim - 1],
                              rows.stride, columns.stride, norm_fold(p)});
    });
}

diopiError_t diopiCdistBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input1,
                                ConstTensor input2, double p, ConstTensor cdist) {
    return guarded([&] {
        const TensorView left = required_view(input1, "input1");
        const TensorView right = required_view(input2, "input2");
        const TensorView gradient = required_view(grad_output, "grad_output");
        const TensorView distances = required_view(cdist, "cdist");
        require_points(left, right);
        require_same_sizes(gradient, distances, "grad_output", "cdist");
        require(gradient.ndim >= 2 && gradient.sizes[gradient.ndim - 1] == right.sizes[right.ndim - 2],
                "cdist has a distance for each row of input2");
        const Walked rows = walked(right, 2);
        const Walked gradients = walked(gradient, 1);
        const Walked norms = walked(distances, 1);
        DistanceGradientTask task{{},
                                  {required_view(grad_input, "grad_input"), left, rows.others, gradients.others,
                                   norms.others},
                                  right.sizes[right.ndim - 2],
                                  rows.stride,
                                  gradients.stride,
                                  norms.stride,
                                  norm_fold(p)};
        for (const TensorView& operand : task.operands) require_storable(operand);
        task.space = broadcast_space<5>(task.operands[0], task.operands);
        for_each(ctx, task.operands[0].numel, task);
    });
}

}  // namespace impl::portable
