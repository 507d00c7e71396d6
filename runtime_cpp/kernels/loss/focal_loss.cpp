// Cross entropies in which examples that are already right count little: of classes one by one, and of a softmax.
#include <diopi/diopirt.h>

#include <utility>

#include "class_targets.h"
#include "element_loss.h"
#include "math/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// `positive` and `negative` are the factors of both sides.
struct FocalLoss {
    template <class C>
    static DIOPI_HD C entropy(C input, C target) {
        return (C(1) - target) * input + math::softplus(-input);
    }
    // The probability of the wrong side, without a difference that cancels.
    template <class C>
    static DIOPI_HD C missed(C input, C target) {
        return math::sigmoid(input) * (C(1) - target) + math::sigmoid(-input) * target;
    }
    template <class C>
    static DIOPI_HD C value(C input, C target, C positive, C negative, C gamma) {
        const C factor = positive * target + negative * (C(1) - target);
        return factor * entropy(input, target) * math::pow(missed(input, target), gamma);
    }
    template <class C>
    static DIOPI_HD C slope(C input, C target, C positive, C negative, C gamma) {
        const C share = math::sigmoid(input);
        const C wrong = missed(input, target);
        const C focus = math::pow(wrong, gamma);
        const C change = share * math::sigmoid(-input) * (C(1) - C(2) * target);  // of `wrong`
        const C by_focus = wrong == C(0) ? C(0) : entropy(input, target) * gamma * focus / wrong * change;
        const C factor = positive * target + negative * (C(1) - target);
        return factor * ((share - target) * focus + by_focus);
    }
};

// Rows of classes with one target each; whatever is no class is background.
struct ClassRows {
    TensorView out;
    TensorView input;  // [rows, classes]
    ClassTargets targets;

    DIOPI_HD double get(int64_t row, int64_t c) const {
        return load_as<double>(input, row * input.strides[0] + c * input.strides[1]);
    }
    DIOPI_HD void set(int64_t row, int64_t c, double value) const {
        store_as(out, row * out.strides[0] + c * out.strides[1], value);
    }
    DIOPI_HD double weight(int64_t label) const { return label < 0 ? 1.0 : targets.weight_of(label); }
};

template <bool gradient>
struct SigmoidRowsTask {
    ClassRows rows;
    double alpha;
    double gamma;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t row = i / rows.targets.classes, c = i - row * rows.targets.classes;
        const int64_t label = rows.targets.get(row);
        const double input = rows.get(row, c);
        const double target = label == c ? 1.0 : 0.0;
        rows.set(row, c,
                 rows.weight(label) * (gradient ? FocalLoss::slope(input, target, alpha, 1.0 - alpha, gamma)
                                                : FocalLoss::value(input, target, alpha, 1.0 - alpha, gamma)));
    }
};

// The softmax's own derivative at p is p_i (i == j) - p_i p_j. A row of background costs nothing.
template <bool gradient>
struct SoftmaxRowsTask {
    ClassRows rows;
    double alpha;
    double gamma;

    DIOPI_HD void operator()(int64_t row) const {
        const int64_t label = rows.targets.get(row);
        const double p = label < 0 ? 1.0 : rows.get(row, label);
        const double factor = label < 0 ? 0.0 : -alpha * rows.weight(label);
        if (!gradient) {
            store_as(rows.out, row * rows.out.strides[0], factor * math::pow(1.0 - p, gamma) * math::log(p));
            return;
        }
        const double by_focus = gamma == 0.0 ? 0.0 : gamma * math::pow(1.0 - p, gamma - 1.0) * p * math::log(p);
        const double slope = label < 0 ? 0.0 : factor * (math::pow(1.0 - p, gamma) - by_focus);
        for (int64_t c = 0; c < rows.targets.classes; ++c)
            rows.set(row, c, slope * ((c == label ? 1.0 : 0.0) - rows.get(row, c)));
    }
};

ClassRows class_rows(Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight) {
    const TensorView x = required_view(input, "input");
    if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
    require(x.ndim == 2, "a focal loss takes rows of classes, not %d dimensions", x.ndim);
    const TensorView result = required_view(out, "out");
    require_storable(result);
    require(result.ndim >= 1 && result.sizes[0] == x.sizes[0] && (result.ndim == 1 || result.same_sizes(x)),
            "the result of a focal loss has another shape than its input");
    TensorView weights = view(weight);
    if (weights.numel == 0) weights = undefined_view();
    return {result, x, ClassTargets(required_view(target, "target"), weights, x.sizes[0], x.sizes[1], -1)};
}

template <bool gradient>
diopiError_t sigmoid_rows(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                          float gamma, float alpha) {
    return guarded([&] {
        const ClassRows rows = class_rows(out, input, target, weight);
        require(rows.out.ndim == 2, "a focal loss of classes has a value for each class");
        for_each(ctx, rows.input.numel, SigmoidRowsTask<gradient>{rows, alpha, gamma});
    });
}

template <bool gradient>
diopiError_t softmax_rows(Context ctx, Tensor out, ConstTensor softmax, ConstTensor target, ConstTensor weight,
                          float gamma, float alpha) {
    return guarded([&] {
        const ClassRows rows = class_rows(out, softmax, target, weight);
        require(rows.out.ndim == (gradient ? 2 : 1), "a focal loss has a value for each row, its gradient each class");
        for_each(ctx, rows.input.sizes[0], SoftmaxRowsTask<gradient>{rows, alpha, gamma});
    });
}

// Of the positive and the negative side; a negative alpha weighs neither.
std::pair<double, double> factors_of(float alpha) {
    return alpha < 0 ? std::pair{1.0, 1.0} : std::pair{double{alpha}, 1.0 - double{alpha}};
}

}  // namespace

diopiError_t diopiSigmoidFocalLoss(Context ctx, Tensor out, ConstTensor inputs, ConstTensor targets, float alpha,
                                   float gamma, diopiReduction_t reduction) {
    const auto [positive, negative] = factors_of(alpha);
    return loss_forward<FocalLoss>(ctx, out, inputs, targets, reduction, positive, negative, double{gamma});
}

diopiError_t diopiSigmoidFocalLossBackward(Context ctx, Tensor grad_output, ConstTensor input, ConstTensor target,
                                           Tensor grad_input, float gamma, float alpha, diopiReduction_t reduction) {
    const auto [positive, negative] = factors_of(alpha);
    return loss_backward<FocalLoss>(ctx, grad_input, grad_output, input, target, reduction, positive, negative,
                                    double{gamma});
}

diopiError_t diopiSigmoidFocalLossMmcv(Context ctx, Tensor output, ConstTensor input, ConstTensor target,
                                       ConstTensor weight, float gamma, float alpha) {
    return sigmoid_rows<false>(ctx, output, input, target, weight, gamma, alpha);
}

diopiError_t diopiSigmoidFocalLossBackwardMmcv(Context ctx, Tensor grad_input, ConstTensor input, ConstTensor target,
                                               ConstTensor weight, float gamma, float alpha) {
    return sigmoid_rows<true>(ctx, grad_input, input, target, weight, gamma, alpha);
}

diopiError_t diopiSoftmaxFocalLossMmcv(Context ctx, Tensor output, ConstTensor softmax, ConstTensor target,
                                       ConstTensor weight, float gamma, float alpha) {
    return softmax_rows<false>(ctx, output, softmax, target, weight, gamma, alpha);
}

// Nothing needs to be kept in `buff` between the rows.
diopiError_t diopiSoftmaxFocalLossBackwardMmcv(Context ctx, Tensor grad_input, Tensor, ConstTensor softmax,
                                               ConstTensor target, ConstTensor weight, float gamma, float alpha) {
    return softmax_rows<true>(ctx, grad_input, softmax, target, weight, gamma, alpha);
}

}  // namespace impl::portable
