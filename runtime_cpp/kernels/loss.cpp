// Losses that compare an input with a target element by element: squared, smooth absolute, binary cross entropy.
#include <diopi/diopirt.h>

#include "core/index.h"
#include "core/math.h"
#include "core/partial_sums.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// One element: input, target, weight and, for logits, the weight of the positive class.
struct Element {
    double input;
    double target;
    double weight;
    double pos_weight;
};

struct SquaredLoss {
    DIOPI_HD double value(const Element& e) const { return (e.input - e.target) * (e.input - e.target); }
    DIOPI_HD double slope(const Element& e) const { return 2.0 * (e.input - e.target); }
};

struct SmoothAbsoluteLoss {
    double beta;  // where the square ends; zero gives the absolute difference

    DIOPI_HD double value(const Element& e) const {
        const double distance = math::abs(e.input - e.target);
        return distance < beta ? 0.5 * distance * distance / beta : distance - 0.5 * beta;
    }
    DIOPI_HD double slope(const Element& e) const {
        const double difference = e.input - e.target;
        return math::abs(difference) < beta ? difference / beta : math::sign(difference);
    }
};

struct BinaryCrossEntropy {
    DIOPI_HD double value(const Element& e) const {
        // torch's bound on the logarithm keeps a certain but wrong input finite
        const double positive = math::max(math::log(e.input), -100.0);
        const double negative = math::max(math::log1p(-e.input), -100.0);
        return -(e.target * positive + (1.0 - e.target) * negative) * e.weight;
    }
    DIOPI_HD double slope(const Element& e) const {
        return e.weight * (e.input - e.target) / math::max(e.input * (1.0 - e.input), 1e-12);
    }
};

struct BinaryCrossEntropyOfLogits {
    DIOPI_HD double value(const Element& e) const {
        const double factor = 1.0 + (e.pos_weight - 1.0) * e.target;
        return e.weight * ((1.0 - e.target) * e.input +
                           factor * (math::log1p(math::exp(-math::abs(e.input))) + math::max(-e.input, 0.0)));
    }
    DIOPI_HD double slope(const Element& e) const {
        const double positive = e.pos_weight * e.target;
        return e.weight * ((positive + 1.0 - e.target) * math::sigmoid(e.input) - positive);
    }
};

// Operands broadcast to the input; weights may be absent.
struct Elements {
    Space<5> space;  // out or grad_input, input, target, weight, pos_weight
    TensorView out;
    TensorView input;
    TensorView target;
    TensorView weight;
    TensorView pos_weight;

    DIOPI_HD Element get(const Offsets<5>& at) const {
        return {load_as<double>(input, at.at[1]), load_as<double>(target, at.at[2]),
                weight.defined() ? load_as<double>(weight, at.at[3]) : 1.0,
                pos_weight.defined() ? load_as<double>(pos_weight, at.at[4]) : 1.0};
    }
};

TensorView float_view(diopiConstTensorHandle_t handle, const char* name) {
    const TensorView result = required_view(handle, name);
    if (!is_float_dtype(result.dtype)) fail_dtype(result.dtype);
    return result;
}

Elements elements_of(diopiConstTensorHandle_t out, diopiConstTensorHandle_t input, diopiConstTensorHandle_t target,
                     diopiConstTensorHandle_t weight, diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction) {
    Elements result;
    result.out = required_view(out, "out");
    require_storable(result.out);
    result.input = float_view(input, "input");
    result.target = required_view(target, "target");
    require_storable(result.target);
    result.weight = weight == nullptr ? undefined_view() : float_view(weight, "weight");
    result.pos_weight = pos_weight == nullptr ? undefined_view() : float_view(pos_weight, "pos_weight");
    TensorView absent = undefined_view();
    absent.ndim = 0;
    // a reduced output is no operand: the elements are those of the input, or of a target that it broadcasts to
    const TensorView& largest = result.target.numel > result.input.numel ? result.target : result.input;
    const TensorView& shape = reduction == ReductionNone ? result.out : largest;
    const TensorView operands[5] = {shape, result.input, result.target,
                                    result.weight.defined() ? result.weight : absent,
                                    result.pos_weight.defined() ? result.pos_weight : absent};
    result.space = broadcast_space<5>(shape, operands);
    return result;
}

template <class Loss>
struct ElementLossTask {
    Elements elements;
    Loss loss;
    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<5> at = elements.space.offsets(i);
        store_as(elements.out, at.at[0], loss.value(elements.get(at)));
    }
};

template <class Loss>
struct LossTerm {
    Elements elements;
    Loss loss;
    DIOPI_HD Weighted operator()(int64_t i) const { return {loss.value(elements.get(elements.space.offsets(i))), 1.0}; }
};

template <class Loss>
struct LossGradientTask {
    Elements elements;
    GradientSource gradient;
    Loss loss;
    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<5> at = elements.space.offsets(i);
        store_as(elements.out, at.at[0], gradient.get(i) * loss.slope(elements.get(at)));
    }
};

template <class Loss>
diopiError_t loss_forward(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                          diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction, const Loss& loss) {
    return guarded([&] {
        const Elements elements = elements_of(out, input, target, weight, pos_weight, reduction);
        const int64_t count = elements.space.numel;
        if (reduction == ReductionNone) {
            for_each(ctx, count, ElementLossTask<Loss>{elements, loss});
        } else {
            require(elements.out.numel == 1, "a reduced loss has one element, the output %lld",
                    static_cast<long long>(elements.out.numel));
            sum_terms(ctx, count, LossTerm<Loss>{elements, loss},
                      StoreReduced{elements.out, undefined_view(), reduction == ReductionMean});
        }
    });
}

template <class Loss>
diopiError_t loss_backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                           diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                           diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                           diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction, const Loss& loss) {
    return guarded([&] {
        const Elements elements = elements_of(grad_input, input, target, weight, pos_weight, ReductionNone);
        const GradientSource gradient(required_view(grad_output, "grad_output"), reduction, elements.space.numel,
                                      nullptr);
        for_each(ctx, elements.space.numel, LossGradientTask<Loss>{elements, gradient, loss});
    });
}

}  // namespace

diopiError_t diopiMSELoss(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t target, diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, nullptr, nullptr, reduction, SquaredLoss{});
}

diopiError_t diopiMSELossBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t target, diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, nullptr, nullptr, reduction, SquaredLoss{});
}

diopiError_t diopiSmoothL1Loss(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                               diopiConstTensorHandle_t target, diopiReduction_t reduction, double beta) {
    return loss_forward(ctx, out, input, target, nullptr, nullptr, reduction, SmoothAbsoluteLoss{beta});
}

diopiError_t diopiSmoothL1LossBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                       diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                       diopiConstTensorHandle_t target, diopiReduction_t reduction, double beta) {
    return loss_backward(ctx, grad_input, grad_output, input, target, nullptr, nullptr, reduction,
                         SmoothAbsoluteLoss{beta});
}

diopiError_t diopiBCELoss(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                          diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, weight, nullptr, reduction, BinaryCrossEntropy{});
}

diopiError_t diopiBCELossBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                  diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, weight, nullptr, reduction, BinaryCrossEntropy{});
}

diopiError_t diopiBCEWithLogits(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, weight, pos_weight, reduction, BinaryCrossEntropyOfLogits{});
}

diopiError_t diopiBCEWithLogitsBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                        diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                        diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                        diopiConstTensorHandle_t pos_weight, diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, weight, pos_weight, reduction,
                         BinaryCrossEntropyOfLogits{});
}

}  // namespace impl::portable
