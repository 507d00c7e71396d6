// Correlation of two feature maps: windows of the one compared with shifted windows of the other.
#include <diopi/diopirt.h>

#include "space/element.h"
#include "space/window.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// One axis of the shifts: evenly spaced around none.
struct Shifts {
    int64_t count, spacing;
    DIOPI_HD int64_t at(int64_t k) const { return k * spacing - spacing * (count - 1) / 2; }
};

struct Comparison {
    Window rows, columns;
    Shifts down, across;
};

template <class T>
struct CorrelationTask {
    Elements<T, 5> out;  // [images, shifts down, shifts across, rows, columns]
    Elements<const T, 4> first, second;
    Comparison form;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<5> at = out.position(i);
        const Range ky = form.rows.inside(at[3]), kx = form.columns.inside(at[4]);
        const int64_t down = form.down.at(at[1]), across = form.across.at(at[2]);
        AccumulateType<T> sum(0);
        for (int64_t j = ky.begin; j < ky.end; ++j) {
            const int64_t y = form.rows.start(at[3]) + j * form.rows.dilation;
            if (y + down < 0 || y + down >= form.rows.input) continue;
            for (int64_t k = kx.begin; k < kx.end; ++k) {
                const int64_t x = form.columns.start(at[4]) + k * form.columns.dilation;
                if (x + across < 0 || x + across >= form.columns.input) continue;
                for (int64_t c = 0; c < first.sizes[1]; ++c) {
                    sum += cast<AccumulateType<T>>(first(at[0], c, y, x)) *
                           cast<AccumulateType<T>>(second(at[0], c, y + down, x + across));
                }
            }
        }
        out(at[0], at[1], at[2], at[3], at[4]) = cast<T>(sum);
    }
};

// A pixel of one map gathers from its partner in the other one under each shift, and the windows that compare the two.
template <class T>
struct CorrelationGradTask {
    Elements<T, 4> grad;
    Elements<const T, 5> grad_output;
    Elements<const T, 4> other;
    Comparison form;
    bool of_first;

    DIOPI_HD void operator()(int64_t i) const {
        const Position<4> at = grad.position(i);
        AccumulateType<T> sum(0);
        for (int64_t s = 0; s < form.down.count; ++s) {
            const int64_t y = at[2] + (of_first ? 1 : -1) * form.down.at(s);
            if (y < 0 || y >= form.rows.input) continue;
            for (int64_t t = 0; t < form.across.count; ++t) {
                const int64_t x = at[3] + (of_first ? 1 : -1) * form.across.at(t);
                if (x < 0 || x >= form.columns.input) continue;
                const AccumulateType<T> compared = windows(at[0], s, t, of_first ? at[2] : y, of_first ? at[3] : x);
                sum += compared * cast<AccumulateType<T>>(other(at[0], at[1], y, x));
            }
        }
        grad(at[0], at[1], at[2], at[3]) = cast<T>(sum);
    }

    // The gradients of all windows that hold a pixel of the first map, under one shift.
    DIOPI_HD AccumulateType<T> windows(int64_t image, int64_t s, int64_t t, int64_t y, int64_t x) const {
        const Range rows = form.rows.covering(y), columns = form.columns.covering(x);
        AccumulateType<T> sum(0);
        for (int64_t row = rows.begin; row < rows.end; ++row) {
            if (form.rows.place(row, y) < 0) continue;
            for (int64_t column = columns.begin; column < columns.end; ++column) {
                if (form.columns.place(column, x) >= 0)
                    sum += cast<AccumulateType<T>>(grad_output(image, s, t, row, column));
            }
        }
        return sum;
    }
};

Comparison comparison_of(const TensorView& first, const TensorView& second, const TensorView& output,
                         const Window& rows, const Window& columns, const Shifts& down, const Shifts& across) {
    require(first.ndim == 4 && first.same_sizes(second), "the two maps of a correlation differ in shape");
    require(down.count > 0 && across.count > 0, "a correlation needs a shift");
    require(output.ndim == 5 && output.sizes[0] == first.sizes[0] && output.sizes[1] == down.count &&
                output.sizes[2] == across.count,
            "the output of a correlation has one plane for each shift");
    Comparison form{rows, columns, down, across};
    form.rows.input = first.sizes[2];
    form.rows.output = output.sizes[3];
    form.columns.input = first.sizes[3];
    form.columns.output = output.sizes[4];
    return form;
}

}  // namespace

diopiError_t diopiCorrelationMmcv(Context ctx, Tensor output, ConstTensor input1, ConstTensor input2, int64_t kH,
                                  int64_t kW, int64_t patchH, int64_t patchW, int64_t padH, int64_t padW,
                                  int64_t dilationH, int64_t dilationW, int64_t dilation_patchH,
                                  int64_t dilation_patchW, int64_t dH, int64_t dW) {
    return guarded([&] {
        const TensorView result = required_view(output, "output");
        const TensorView first = required_view(input1, "input1"), second = required_view(input2, "input2");
        const Comparison form = comparison_of(first, second, result, window_of(0, 0, kH, dH, padH, dilationH),
                                              window_of(0, 0, kW, dW, padW, dilationW), {patchH, dilation_patchH},
                                              {patchW, dilation_patchW});
        for_each_typed<Float, CorrelationTask>(ctx, result.dtype, result.numel, Argument{result, "output"},
                                               Argument{first, "input1"}, Argument{second, "input2"}, form);
    });
}

diopiError_t diopiCorrelationBackwardMmcv(Context ctx, Tensor grad_input1, Tensor grad_input2, ConstTensor grad_output,
                                          ConstTensor input1, ConstTensor input2, int64_t kH, int64_t kW,
                                          int64_t patchH, int64_t patchW, int64_t padH, int64_t padW, int64_t dilationH,
                                          int64_t dilationW, int64_t dilation_patchH, int64_t dilation_patchW,
                                          int64_t dH, int64_t dW) {
    return guarded([&] {
        const TensorView grads = required_view(grad_output, "grad_output");
        const TensorView first = required_view(input1, "input1"), second = required_view(input2, "input2");
        const Comparison form = comparison_of(first, second, grads, window_of(0, 0, kH, dH, padH, dilationH),
                                              window_of(0, 0, kW, dW, padW, dilationW), {patchH, dilation_patchH},
                                              {patchW, dilation_patchW});
        const auto derive = [&](const Argument& gradient, const Argument& other, bool of_first) {
            for_each_typed<Float, CorrelationGradTask>(ctx, grads.dtype, first.numel, gradient,
                                                       Argument{grads, "grad_output"}, other, form, of_first);
        };
        derive({grad_input1, "grad_input1"}, {second, "input2"}, true);
        derive({grad_input2, "grad_input2"}, {first, "input1"}, false);
    });
}

}  // namespace impl::portable
