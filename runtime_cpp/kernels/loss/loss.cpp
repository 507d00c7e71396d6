// Losses that compare an input with a target element by element: squared, smooth absolute, binary cross entropy.
#include <diopi/diopirt.h>

#include "element_loss.h"
#include "math/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct SquaredLoss {
    template <class C>
    static DIOPI_HD C value(C input, C target) {
        return (input - target) * (input - target);
    }
    template <class C>
    static DIOPI_HD C slope(C input, C target) {
        return C(2) * (input - target);
    }
};

// A square up to a distance of beta; zero gives the absolute difference.
struct SmoothAbsoluteLoss {
    template <class C>
    static DIOPI_HD C value(C input, C target, C beta) {
        const C distance = math::abs(input - target);
        const C square = C(0.5) * distance * distance / beta;
        return distance < beta ? square : distance - C(0.5) * beta;
    }
    template <class C>
    static DIOPI_HD C slope(C input, C target, C beta) {
        const C difference = input - target;
        const C share = difference / beta;
        return math::abs(difference) < beta ? share : math::sign(difference);
    }
};

struct BinaryCrossEntropy {
    template <class C>
    static DIOPI_HD C value(C input, C target, C weight) {
        // torch's bound on the logarithm keeps a certain but wrong input finite
        const C positive = math::max(math::log(input), C(-100));
        const C negative = math::max(math::log1p(-input), C(-100));
        return -(target * positive + (C(1) - target) * negative) * weight;
    }
    template <class C>
    static DIOPI_HD C slope(C input, C target, C weight) {
        return weight * (input - target) / math::max(input * (C(1) - input), C(1e-12));
    }
};

struct BinaryCrossEntropyOfLogits {
    template <class C>
    static DIOPI_HD C value(C input, C target, C weight, C pos_weight) {
        const C factor = C(1) + (pos_weight - C(1)) * target;
        return weight * ((C(1) - target) * input +
                         factor * (math::log1p(math::exp(-math::abs(input))) + math::max(-input, C(0))));
    }
    template <class C>
    static DIOPI_HD C slope(C input, C target, C weight, C pos_weight) {
        const C positive = pos_weight * target;
        return weight * ((positive + C(1) - target) * math::sigmoid(input) - positive);
    }
};

// f(the tensor, or the number one where it is absent)
template <class F>
diopiError_t or_one(ConstTensor tensor, F&& f) {
    return tensor == nullptr ? f(1.0) : f(tensor);
}

}  // namespace

diopiError_t diopiMSELoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, diopiReduction_t reduction) {
    return loss_forward<SquaredLoss>(ctx, out, input, target, reduction);
}

diopiError_t diopiMSELossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                  ConstTensor target, diopiReduction_t reduction) {
    return loss_backward<SquaredLoss>(ctx, grad_input, grad_output, input, target, reduction);
}

diopiError_t diopiSmoothL1Loss(Context ctx, Tensor out, ConstTensor input, ConstTensor target,
                               diopiReduction_t reduction, double beta) {
    return loss_forward<SmoothAbsoluteLoss>(ctx, out, input, target, reduction, beta);
}

diopiError_t diopiSmoothL1LossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                       ConstTensor target, diopiReduction_t reduction, double beta) {
    return loss_backward<SmoothAbsoluteLoss>(ctx, grad_input, grad_output, input, target, reduction, beta);
}

diopiError_t diopiBCELoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                          diopiReduction_t reduction) {
    return or_one(weight, [&](auto factor) {
        return loss_forward<BinaryCrossEntropy>(ctx, out, input, target, reduction, factor);
    });
}

diopiError_t diopiBCELossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                  ConstTensor target, ConstTensor weight, diopiReduction_t reduction) {
    return or_one(weight, [&](auto factor) {
        return loss_backward<BinaryCrossEntropy>(ctx, grad_input, grad_output, input, target, reduction, factor);
    });
}

diopiError_t diopiBCEWithLogits(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                                ConstTensor pos_weight, diopiReduction_t reduction) {
    using Loss = BinaryCrossEntropyOfLogits;
    return or_one(weight, [&](auto factor) {
        return or_one(pos_weight, [&](auto positive) {
            return loss_forward<Loss>(ctx, out, input, target, reduction, factor, positive);
        });
    });
}

diopiError_t diopiBCEWithLogitsBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                        ConstTensor target, ConstTensor weight, ConstTensor pos_weight,
                                        diopiReduction_t reduction) {
    using Loss = BinaryCrossEntropyOfLogits;
    return or_one(weight, [&](auto factor) {
        return or_one(pos_weight, [&](auto positive) {
            return loss_backward<Loss>(ctx, grad_input, grad_output, input, target, reduction, factor, positive);
        });
    });
}

}  // namespace impl::portable
