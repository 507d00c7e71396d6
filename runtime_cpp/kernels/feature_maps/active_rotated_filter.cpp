// Filters in all their rotations, and the gradient, which gathers from these.
#include <diopi/diopirt.h>

#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Where the elements of a filter go in each rotation: [orientations, rows, columns, rotations], counted from one.
struct Rotations {
    Elements<const uint8_t, 4> indices;

    DIOPI_HD int64_t count() const { return indices.sizes[3]; }
    DIOPI_HD int64_t elements() const { return indices.sizes[0] * indices.sizes[1] * indices.sizes[2]; }
    DIOPI_HD Position<3> place(int64_t element, int64_t rotation) const {
        const Position<3> at = position_in<3>(indices.sizes, element);
        return position_in<3>(indices.sizes, int64_t{indices(at[0], at[1], at[2], rotation)} - 1);
    }
};

// One input channel of one rotated filter: zero where no element goes.
template <class T>
struct RotateTask {
    Elements<T, 4> out;  // [filters * rotations, input channels * orientations, rows, columns]
    Elements<const T, 5> input;
    Rotations rotations;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t filter = i / input.sizes[1] / rotations.count(),
                      rotation = i / input.sizes[1] % rotations.count();
        const int64_t row = i / input.sizes[1], channel = i % input.sizes[1], first = channel * input.sizes[2];
        for (int64_t e = 0; e < rotations.elements(); ++e) {
            const Position<3> at = position_in<3>(rotations.indices.sizes, e);
            out(row, first + at[0], at[1], at[2]) = cast<T>(0.0f);
        }
        for (int64_t e = 0; e < rotations.elements(); ++e) {
            const Position<3> at = position_in<3>(rotations.indices.sizes, e), to = rotations.place(e, rotation);
            out(row, first + to[0], to[1], to[2]) = input(filter, channel, at[0], at[1], at[2]);
        }
    }
};

template <class T>
struct RotateBackwardTask {
    Elements<T, 5> grad_input;
    Elements<const T, 4> grad_output;
    Rotations rotations;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<5> at = grad_input.position(i);
        AccumulateType<T> sum(0);
        for (int64_t rotation = 0; rotation < rotations.count(); ++rotation) {
            const Position<3> to = rotations.place(i % rotations.elements(), rotation);
            sum += cast<AccumulateType<T>>(
                grad_output(at[0] * rotations.count() + rotation, at[1] * grad_input.sizes[2] + to[0], to[1], to[2]));
        }
        grad_input(at[0], at[1], at[2], at[3], at[4]) = cast<T>(sum);
    }
};

Rotations rotations_of(ConstTensor indices, const TensorView& filters, const TensorView& rotated) {
    const Rotations rotations{elements_of<const uint8_t, 4>(indices, "indices")};
    const int64_t (&sizes)[4] = rotations.indices.sizes;
    require(filters.ndim == 5 && sizes[3] > 0, "filters have five dimensions, and one rotation at least");
    require_sizes(filters, "the filters", {filters.sizes[0], filters.sizes[1], sizes[0], sizes[1], sizes[2]});
    require_sizes(rotated, "the rotated filters",
                  {filters.sizes[0] * sizes[3], filters.sizes[1] * sizes[0], sizes[1], sizes[2]});
    return rotations;
}

}  // namespace

diopiError_t diopiActiveRotatedFilterMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor indices) {
    return guarded([&] {
        const TensorView filters = required_view(input, "input"), result = required_view(output, "output");
        const Rotations rotations = rotations_of(indices, filters, result);
        for_each_typed<Float, RotateTask>(ctx, result.dtype, result.sizes[0] * filters.sizes[1],
                                          Argument{result, "output"}, Argument{filters, "input"}, rotations);
    });
}

diopiError_t diopiActiveRotatedFilterBackwardMmcv(Context ctx, Tensor grad_in, ConstTensor grad_out,
                                                  ConstTensor indices) {
    return guarded([&] {
        const TensorView filters = required_view(grad_in, "grad_in"), grads = required_view(grad_out, "grad_out");
        const Rotations rotations = rotations_of(indices, filters, grads);
        for_each_typed<Float, RotateBackwardTask>(ctx, filters.dtype, filters.numel, Argument{filters, "grad_in"},
                                                  Argument{grads, "grad_out"}, rotations);
    });
}

}  // namespace impl::portable
