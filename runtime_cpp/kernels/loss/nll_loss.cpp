// Negative log likelihood of one class per line, with weights, an ignored class and its gradients.
#include <diopi/diopirt.h>

#include "class_targets.h"
#include "copy/copy.h"
#include "core/scalar.h"
#include "partial_sums.h"
#include "space/lines.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct NllLines {
    Lines<1> lines;
    TensorView tensor;  // the input or its gradient
    ClassTargets targets;

    // Calls f(line, label, offset of the line) for the lines up to `end`; a host goes through usual targets without a division
    // for each.
    template <class F>
    DIOPI_HD void visit(int64_t line, int64_t end, F&& f) const {
        if (!Team::kAlone || targets.target.dtype != diopi_dtype_int64 || !targets.space.contiguous()) {
            for (; line < end; ++line) f(line, targets.get(line), lines.outer.offset(line));
            return;
        }
        const auto* labels = targets.target.as<int64_t>();
        const int64_t length = lines.outer.inner_size(), step = lines.outer.inner_stride(0);
        while (line < end) {
            const int64_t left = length - line % length, stop = end - line < left ? end : line + left;
            for (int64_t offset = lines.outer.offset(line); line < stop; ++line, offset += step)
                f(line, targets.known(labels[line]), offset);
        }
    }
};

struct NllTerm : NllLines {
    DIOPI_HD Weighted operator()(int64_t line) const {
        const auto value = [&](int64_t offset) { return load_as<double>(tensor, offset); };
        return term(targets.get(line), lines.outer.offset(line), value);
    }

    // Of all lines of a block or a thread's.
    template <class Elements>
    DIOPI_HD Weighted operator()(int64_t first, const Elements& mine) const {
        Weighted sum{0, 0};
        if constexpr (Team::kAlone) {
            const auto add = [&](const auto& value) {
                visit(first, first + mine.end,
                      [&](int64_t, int64_t label, int64_t offset) { sum += term(label, offset, value); });
            };
            if (tensor.dtype == diopi_dtype_float32) {
                add([numbers = tensor.as<float>()](int64_t offset) { return static_cast<double>(numbers[offset]); });
            } else {
                add([&](int64_t offset) { return load_as<double>(tensor, offset); });
            }
        } else {
            for (int64_t k = mine.first; k < mine.end; k += mine.step) sum += (*this)(first + k);
        }
        return sum;
    }

private:
    template <class Value>
    DIOPI_HD Weighted term(int64_t label, int64_t offset, const Value& value) const {
        if (label == ClassTargets::kIgnored) return {0, 0};
        if (label == ClassTargets::kInvalid) return {math::quiet_nan<double>, 1};
        const double weight = targets.weight_of(label);
        return {-weight * value(offset + label * lines.strides[0]), weight};
    }
};

struct NllGradientTask : NllLines {  // the gradient is zero but for what this task writes
    GradientSource gradient;

    DIOPI_HD void operator()(int64_t, int64_t begin, int64_t end) const {
        const double whole = gradient.get(begin);
        visit(begin, end, [&](int64_t line, int64_t label, int64_t offset) {
            if (label < 0) return;
            const double slope = gradient.reduction == ReductionNone ? gradient.get(line) : whole;
            store_as(tensor, offset + label * lines.strides[0], -targets.weight_of(label) * slope);
        });
    }
};

diopiError_t nll_forward(Context ctx, Tensor out, Tensor total_weight, ConstTensor input, ConstTensor target,
                         ConstTensor weight, diopiReduction_t reduction, int64_t ignore_index) {
    return guarded([&] {
        const TensorView x = required_view(input, "input"), y = required_view(out, "out");
        if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
        const Lines<1> lines = lines_along({x}, class_dim(x), true);  // without classes, too: targets may be ignored
        const int64_t count = lines.outer.numel;
        const ClassTargets targets(required_view(target, "target"), view(weight), count, lines.count, ignore_index);
        require_valid(ctx, targets, count);
        const TensorView total = view(total_weight);
        store_loss(ctx, count, NllTerm{{lines, x, targets}}, reduction, y, total);
        if (reduction == ReductionNone && total.defined()) fill_elements(ctx, total, integer_scalar(0));
    });
}

diopiError_t nll_backward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                          ConstTensor target, ConstTensor weight, ConstTensor total_weight, diopiReduction_t reduction,
                          int64_t ignore_index) {
    return guarded([&] {
        const TensorView x = required_view(input, "input"), result = required_view(grad_input, "grad_input");
        require(result.same_sizes(x), "grad_input of a loss has another shape than its input");
        require_storable(result);
        const Lines<1> lines = lines_along({result}, class_dim(result), true);
        const int64_t count = lines.outer.numel;
        const ClassTargets targets(required_view(target, "target"), view(weight), count, lines.count, ignore_index);
        const TensorView total =
            total_weight != nullptr ? view(total_weight) : total_weight_of(ctx, targets, count, reduction);
        const GradientSource gradient(required_view(grad_output, "grad_output"), reduction, count, total);
        fill_elements(ctx, result, integer_scalar(0));
        for_runs(stream_of(ctx), 1, count, NllGradientTask{{lines, result, targets}, gradient});
    });
}

}  // namespace

diopiError_t diopiNLLLoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                          diopiReduction_t reduction, int64_t ignore_index) {
    return nll_forward(ctx, out, nullptr, input, target, weight, reduction, ignore_index);
}

diopiError_t diopiNLLLossV2(Context ctx, Tensor out, Tensor totalWeight, ConstTensor input, ConstTensor target,
                            ConstTensor weight, diopiReduction_t reduction, int64_t ignore_index) {
    return nll_forward(ctx, out, totalWeight, input, target, weight, reduction, ignore_index);
}

diopiError_t diopiNLLLossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                  ConstTensor target, ConstTensor weight, diopiReduction_t reduction,
                                  int64_t ignore_index) {
    return nll_backward(ctx, grad_input, grad_output, input, target, weight, nullptr, reduction, ignore_index);
}

diopiError_t diopiNLLLossV2Backward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                    ConstTensor target, ConstTensor weight, ConstTensor totalWeight,
                                    diopiReduction_t reduction, int64_t ignore_index) {
    return nll_backward(ctx, grad_input, grad_output, input, target, weight, totalWeight, reduction, ignore_index);
}

}  // namespace impl::portable
