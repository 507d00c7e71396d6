// Losses of one element each: a Loss has value(Element) and slope(Element), the derivative by the input.
#ifndef DIOPI_KERNELS_CORE_ELEMENT_LOSS_H_
#define DIOPI_KERNELS_CORE_ELEMENT_LOSS_H_

#include <diopi/diopirt.h>

#include "index.h"
#include "partial_sums.h"
#include "tensor.h"

namespace diopi::kernels {

// One element: input, target, weight and, for logits, the weight of the positive class.
struct Element {
    double input;
    double target;
    double weight;
    double pos_weight;
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

inline TensorView float_view(ConstTensor handle, const char* name) {
    const TensorView result = required_view(handle, name);
    if (!is_float_dtype(result.dtype)) fail_dtype(result.dtype);
    return result;
}

inline Elements elements_of(ConstTensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                            ConstTensor pos_weight, diopiReduction_t reduction) {
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
diopiError_t loss_forward(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                          ConstTensor pos_weight, diopiReduction_t reduction, const Loss& loss) {
    return guarded([&] {
        const Elements elements = elements_of(out, input, target, weight, pos_weight, reduction);
        const int64_t count = elements.space.numel;
        if (reduction == ReductionNone) {
            for_each(ctx, count, ElementLossTask<Loss>{elements, loss});
        } else {
            require(elements.out.numel == 1, "a reduced loss has one element, the output %lld", elements.out.numel);
            sum_terms(ctx, count, LossTerm<Loss>{elements, loss},
                      StoreReduced{elements.out, undefined_view(), reduction == ReductionMean});
        }
    });
}

template <class Loss>
diopiError_t loss_backward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                           ConstTensor target, ConstTensor weight, ConstTensor pos_weight, diopiReduction_t reduction,
                           const Loss& loss) {
    return guarded([&] {
        const Elements elements = elements_of(grad_input, input, target, weight, pos_weight, ReductionNone);
        const GradientSource gradient(required_view(grad_output, "grad_output"), reduction, elements.space.numel,
                                      nullptr);
        for_each(ctx, elements.space.numel, LossGradientTask<Loss>{elements, gradient, loss});
    });
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_ELEMENT_LOSS_H_
