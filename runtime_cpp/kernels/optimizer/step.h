// What optimizers' steps share: their operands, and how they read their rates.
#pragma once

#include <cstdio>

#include "core/device_code.h"
#include "core/tensor.h"
#include "space/index.h"

namespace diopi::kernels {

// State that a step may do without; callers leave it out as null or as a tensor without elements.
inline TensorView optional_state(ConstTensor handle, const TensorView& param) {
    const TensorView state = view(handle);
    return state.defined() && state.numel == 0 && param.numel > 0 ? undefined_view() : state;
}

// A parameter with its gradient and state, element by element; absent ones have no strides.
template <int N>
struct StepTensors {
    Space<N> space;  // parameter, gradient, state...
    TensorView tensors[N];
    bool dense;  // one run of memory each, apart from absent ones

    DIOPI_HD Offsets<N> offsets(int64_t i) const {
        if (!dense) return space.offsets(i);
        Offsets<N> result;
        for (int n = 0; n < N; ++n) result.at[n] = i;
        return result;
    }

    explicit StepTensors(const TensorView (&views)[N]) {
        TensorView absent = undefined_view();
        absent.ndim = 0;
        TensorView operands[N];
        for (int n = 0; n < N; ++n) {
            tensors[n] = views[n];
            operands[n] = views[n].defined() ? views[n] : absent;
            if (!views[n].defined()) continue;
            require(views[n].same_sizes(views[0]), "an optimizer's tensors differ in shape");
        }
        space = broadcast_space<N>(views[0], operands, Visit::any_order);
        dense = space.ndim <= 1;
        for (int n = 0; n < N; ++n) dense = dense && (!views[n].defined() || space.inner_stride(n) == 1);
    }
};

// A float argument as the decimal that was meant: 0.9f is not 0.9, and 1 - 0.999f has only four right digits.
inline double decimal(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", static_cast<double>(value));
    double result = 0;
    return sscanf(text, "%lf", &result) == 1 ? result : static_cast<double>(value);
}

}  // namespace diopi::kernels
