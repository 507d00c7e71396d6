// Cross entropies in which examples that are already right count little: of classes one by one, and of a softmax.
#include <diopi/diopirt.h>

#include "core/class_targets.h"
#include "core/element_loss.h"
#include "core/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct FocalLoss {
    double positive;  // the factors of both sides
    double negative;
    double gamma;

    DIOPI_HD double factor(const Element& e) const {
        return e.weight * (positive * e.target + negative * (1.0 - e.target));
    }
    DIOPI_HD double entropy(const Element& e) const {
        return (1.0 - e.target) * e.input + math::softplus(-e.input);
    }
    // The probability of the wrong side, without a difference that cancels.
    DIOPI_HD double missed(const Element& e) const {
        return math::sigmoid(e.input) * (1.0 - e.target) + math::sigmoid(-e.input) * e.target;
    }
    DIOPI_HD double value(const Element& e) const { return factor(e) * entropy(e) * math::pow(missed(e), gamma); }
    DIOPI_HD double slope(const Element& e) const {
        const double share = math::sigmoid(e.input);
        const double wrong = missed(e);
        const double focus = math::pow(wrong, gamma);
        const double change = share * math::sigmoid(-e.input) * (1.0 - 2.0 * e.target);  // of `wrong`
        const double by_focus = wrong == 0.0 ? 0.0 : entropy(e) * gamma * focus / wrong * change;
        return factor(e) * ((share - e.target) * focus + by_focus);
    }
};

FocalLoss focal_loss(float alpha, float gamma) {
    if (alpha < 0) return {1.0, 1.0, gamma};
    return {alpha, 1.0 - static_cast<double>(alpha), gamma};
}

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
    FocalLoss loss;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t row = i / rows.targets.classes;
        const int64_t c = i - row * rows.targets.classes;
        const int64_t label = rows.targets.get(row);
        const Element element{rows.get(row, c), label == c ? 1.0 : 0.0, rows.weight(label), 1.0};
        rows.set(row, c, gradient ? loss.slope(element) : loss.value(element));
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
    const TensorView x = float_view(input, "input");
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
        const FocalLoss loss{alpha, 1.0 - static_cast<double>(alpha), gamma};
        for_each(ctx, rows.input.numel, SigmoidRowsTask<gradient>{rows, loss});
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

}  // namespace

diopiError_t diopiSigmoidFocalLoss(Context ctx, Tensor out, ConstTensor inputs, ConstTensor targets, float alpha,
                                   float gamma, diopiReduction_t reduction) {
    return loss_forward(ctx, out, inputs, targets, nullptr, nullptr, reduction, focal_loss(alpha, gamma));
}

diopiError_t diopiSigmoidFocalLossBackward(Context ctx, Tensor grad_output, ConstTensor input, ConstTensor target,
                                           Tensor grad_input, float gamma, float alpha, diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, nullptr, nullptr, reduction,
                         focal_loss(alpha, gamma));
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
