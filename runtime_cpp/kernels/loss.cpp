// Losses that compare an input with a target element by element: squared, smooth absolute, binary cross entropy.
#include <diopi/diopirt.h>

#include "core/element_loss.h"
#include "core/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

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

}  // namespace

diopiError_t diopiMSELoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, nullptr, nullptr, reduction, SquaredLoss{});
}

diopiError_t diopiMSELossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                  ConstTensor target, diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, nullptr, nullptr, reduction, SquaredLoss{});
}

diopiError_t diopiSmoothL1Loss(Context ctx, Tensor out, ConstTensor input, ConstTensor target,
                               diopiReduction_t reduction, double beta) {
    return loss_forward(ctx, out, input, target, nullptr, nullptr, reduction, SmoothAbsoluteLoss{beta});
}

diopiError_t diopiSmoothL1LossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                       ConstTensor target, diopiReduction_t reduction, double beta) {
    return loss_backward(ctx, grad_input, grad_output, input, target, nullptr, nullptr, reduction,
                         SmoothAbsoluteLoss{beta});
}

diopiError_t diopiBCELoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                          diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, weight, nullptr, reduction, BinaryCrossEntropy{});
}

diopiError_t diopiBCELossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                  ConstTensor target, ConstTensor weight, diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, weight, nullptr, reduction, BinaryCrossEntropy{});
}

diopiError_t diopiBCEWithLogits(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                                ConstTensor pos_weight, diopiReduction_t reduction) {
    return loss_forward(ctx, out, input, target, weight, pos_weight, reduction, BinaryCrossEntropyOfLogits{});
}

diopiError_t diopiBCEWithLogitsBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                        ConstTensor target, ConstTensor weight, ConstTensor pos_weight,
                                        diopiReduction_t reduction) {
    return loss_backward(ctx, grad_input, grad_output, input, target, weight, pos_weight, reduction,
                         BinaryCrossEntropyOfLogits{});
}

}  // namespace impl::portable
