// Which elements of the input belong to which output of a reduction.
#pragma once

#include <diopi/diopirt.h>

#include "core/tensor.h"
#include "space/index.h"

namespace diopi::kernels {

// A set of dimensions, one bit each.
using DimSet = uint32_t;

inline DimSet all_dims(int ndim) { return (1u << ndim) - 1u; }

// No dims means all of them, as in torch. Fails when one is named twice or out of range.
inline DimSet dim_set(Sizes dims, int ndim) {
    if (dims.len == 0 || dims.data == nullptr) return all_dims(ndim);
    DimSet result = 0;
    for (int64_t i = 0; i < dims.len; ++i) {
        const DimSet bit = 1u << normalized_dim(dims.data[i], ndim);
        require((result & bit) == 0, "dimension %lld is reduced twice", static_cast<long long>(dims.data[i]));
        result |= bit;
    }
    return result & all_dims(ndim);  // a 0-d tensor has no dimension to reduce
}

// A null `dim` means all of them.
inline DimSet dim_set(const int64_t* dim, int ndim) {
    if (dim == nullptr) return all_dims(ndim);
    return (1u << normalized_dim(*dim, ndim)) & all_dims(ndim);
}

// outer: one position per output element; operands are the outputs, then the input. inner: the input's reduced
// dimensions.
template <int Outputs>
struct ReductionSpace {
    Space<Outputs + 1> outer;
    Space<1> inner;
};

// The outputs keep reduced dimensions with size one, or leave them out.
template <int Outputs>
ReductionSpace<Outputs> reduction_space(const TensorView* const (&outputs)[Outputs], const TensorView& input,
                                        DimSet dims) {
    ReductionSpace<Outputs> result;
    int kept = 0;
    for (int d = 0; d < input.ndim; ++d) kept += (dims >> d & 1u) == 0 ? 1 : 0;
    for (const TensorView* output : outputs) {
        require(output->ndim == kept || output->ndim == input.ndim,
                "the output of a reduction has %d dimensions, not %d", output->ndim, kept);
    }
    int position[Outputs] = {};
    for (int d = 0; d < input.ndim; ++d) {
        const bool reduced = (dims >> d & 1u) != 0;
        if (reduced) result.inner.append(input.sizes[d], {input.strides[d]});
        int64_t strides[Outputs + 1] = {};
        for (int n = 0; n < Outputs; ++n) {
            if (reduced && outputs[n]->ndim != input.ndim) continue;
            const int at = position[n]++;
            require(outputs[n]->sizes[at] == (reduced ? 1 : input.sizes[d]),
                    "the output of a reduction has size %lld in dimension %d",
                    static_cast<long long>(outputs[n]->sizes[at]), at);
            strides[n] = outputs[n]->strides[at];
        }
        if (reduced) continue;
        strides[Outputs] = input.strides[d];
        result.outer.append(input.sizes[d], strides);
    }
    coalesce(result.inner);
    coalesce(result.outer);
    return result;
}

inline ReductionSpace<1> reduction_space(const TensorView& output, const TensorView& input, DimSet dims) {
    const TensorView* const outputs[1] = {&output};
    return reduction_space<1>(outputs, input, dims);
}

}  // namespace diopi::kernels
