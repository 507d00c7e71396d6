// Losses of one element each. A Loss has value(input, target, rest...) and slope(input, target, rest...), the derivative
// by the input, all of one type; what follows the target are tensors or numbers that broadcast.
#pragma once

#include <diopi/diopirt.h>

#include "core/workspace.h"
#include "elementwise/elementwise.h"
#include "partial_sums.h"
#include "space/strides.h"

namespace diopi::kernels {

template <class Loss>
struct LossValue {
    template <class C, class... Rest>
    static DIOPI_HD C apply(C input, C target, Rest... rest) {
        return Loss::value(input, target, rest...);
    }
};

template <class Loss>
struct LossGradient {
    template <class C, class... Rest>
    static DIOPI_HD C apply(C gradient, C share, C input, C target, Rest... rest) {
        return gradient * share * Loss::slope(input, target, rest...);
    }
};

// The losses of all elements, one after the other.
template <class T>
struct LossTerms {
    const T* values;
    template <class Elements>
    DIOPI_HD Weighted operator()(int64_t first, Elements mine) const {
        return {sum_of_run(mine, [&](int64_t k) { return values[first + k]; }), static_cast<double>(mine.count())};
    }
};

template <class Loss, class... Rest>
diopiError_t loss_forward(Context ctx, Tensor out, ConstTensor input, ConstTensor target, diopiReduction_t reduction,
                          Rest... rest) {
    using Value = LossValue<Loss>;
    if (reduction == ReductionNone)
        return elementwise<Value, Float, Compute::promote>(ctx, out, input, target, rest...);
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        require_storable(result);
        require(result.numel == 1, "a reduced loss has one element, the output %lld", result.numel);
        const TensorView inputs = required_view(input, "input"), targets = required_view(target, "target");
        const TensorView& shape = targets.numel > inputs.numel ? targets : inputs;
        dispatch<Types<float, double>>(
            inputs.dtype == diopi_dtype_float64 ? diopi_dtype_float64 : diopi_dtype_float32, [&](auto type) {
                using T = typename decltype(type)::type;
                Tensor handle = nullptr;
                const TensorView values = allocated(ctx, &handle, shape.sizes, shape.ndim, dtype_of<T>);
                passed_on(elementwise<Value, Float, Compute::promote>(ctx, handle, input, target, rest...));
                sum_terms(ctx, values.numel, LossTerms<T>{values.as<T>()},
                          StoreReduced{result, undefined_view(), reduction == ReductionMean});
            });
    });
}

template <class Loss, class... Rest>
diopiError_t loss_backward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                           ConstTensor target, diopiReduction_t reduction, Rest... rest) {
    return guarded([&] {
        const int64_t terms = required_view(grad_input, "grad_input").numel;
        const int64_t gradients = required_view(grad_output, "grad_output").numel;
        // A reduced loss has one gradient, or one for each term in a gradient of its gradient.
        require(gradients == terms || (reduction != ReductionNone && gradients == 1),
                "grad_output has %lld elements, the losses %lld", gradients, terms);
        const double share = reduction == ReductionMean ? 1.0 / static_cast<double>(terms) : 1.0;
        passed_on(elementwise<LossGradient<Loss>, Float, Compute::promote>(ctx, grad_input, grad_output, share, input,
                                                                           target, rest...));
    });
}

}  // namespace diopi::kernels
