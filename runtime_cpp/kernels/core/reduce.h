// Reductions: which elements of the input belong to which output, and the loop that folds them.
#ifndef DIOPI_KERNELS_CORE_REDUCE_H_
#define DIOPI_KERNELS_CORE_REDUCE_H_

#include <diopi/diopirt.h>

#include "index.h"
#include "strides.h"
#include "tensor.h"

namespace diopi::kernels {

// A set of dimensions, one bit each.
using DimSet = uint32_t;

inline DimSet all_dims(int ndim) { return (1u << ndim) - 1u; }

// No dims means all of them, as in torch. Fails when one is named twice or out of range.
inline DimSet dim_set(diopiSize_t dims, int ndim) {
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

// Calls run(pointer, count, stride) with a stride as of with_stride() for each row of `inner` below `base`.
template <class T, class Run>
DIOPI_HD inline void for_each_run(const Space<1>& inner, const T* base, Run&& run) {
    if (inner.numel == 0) return;
    const int64_t count = inner.inner_size();
    const int64_t stride = inner.inner_stride(0);
    const int64_t rows = inner.numel / count;
    with_stride(stride, [&](auto step) {
        run(base, count, step);
        for (int64_t row = 1; row < rows; ++row) run(base + inner.offset(row * count), count, step);
    });
}

// One fold per output: `Fold` has State, start(), step(State, value), join(State, State) and finish(State, count).
template <class Fold, class T>
DIOPI_HD inline typename Fold::State fold_elements(const Fold& fold, const Space<1>& inner, const T* base) {
    using State = typename Fold::State;
    State total = fold.start();
    for_each_run(inner, base, [&](const T* values, int64_t count, auto stride) {
        const State run = fold_of_run(
            count, fold.start(), [&](State state, int64_t k) { return fold.step(state, values[k * stride]); },
            [&](State a, State b) { return fold.join(a, b); });
        total = fold.join(total, run);
    });
    return total;
}

template <class Fold, class T>
struct FoldTask {
    ReductionSpace<1> space;
    TensorView out;
    const T* input;
    Fold fold;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<2> at = space.outer.offsets(i);
        store_as(out, at.at[0], fold.finish(fold_elements(fold, space.inner, input + at.at[1]), space.inner.numel));
    }
};

// Neighbouring outputs at a time, where the input's memory runs along the outputs: each row is then read once.
template <class Fold, class T>
struct ColumnFoldTask {
#if defined(__CUDACC__)
    static constexpr int kColumns = 16;
#else
    static constexpr int kColumns = 64;
#endif

    ReductionSpace<1> space;
    TensorView out;
    const T* input;
    Fold fold;

    DIOPI_HD int64_t blocks_of_a_run() const { return (space.outer.inner_size() + kColumns - 1) / kColumns; }
    int64_t blocks() const { return space.outer.numel / space.outer.inner_size() * blocks_of_a_run(); }

    DIOPI_HD void operator()(int64_t block) const {
        const int64_t length = space.outer.inner_size();
        const int64_t run = block / blocks_of_a_run();
        const int64_t column = (block - run * blocks_of_a_run()) * kColumns;
        const int64_t first = run * length + column;
        const Offsets<2> base = space.outer.offsets(first);
        const int width = static_cast<int>(length - column < kColumns ? length - column : kColumns);
        typename Fold::State states[kColumns];
        for (int c = 0; c < kColumns; ++c) states[c] = fold.start();
        if (width == kColumns) {
            fold_run(states, input + base.at[1], std::integral_constant<int, kColumns>{});
        } else {
            fold_run(states, input + base.at[1], width);
        }
        const int64_t step = space.outer.inner_stride(0);
        for (int c = 0; c < width; ++c) {
            store_as(out, base.at[0] + c * step, fold.finish(states[c], space.inner.numel));
        }
    }

    template <class Width>
    DIOPI_HD void fold_run(typename Fold::State* states, const T* base, Width width) const {
        for_each_run(space.inner, base, [&](const T* values, int64_t count, auto stride) {
            for (int64_t k = 0; k < count; ++k) {
                const T* row = values + k * stride;
                for (int c = 0; c < width; ++c) states[c] = fold.step(states[c], row[c]);
            }
        });
    }
};

// Float sums are kept in double: exact enough for any size and any order. Integers wrap, as in torch.
template <class T>
struct SumFold {
    using State = std::conditional_t<is_float<T>, double, uint64_t>;
    using Result = std::conditional_t<is_float<T>, double, int64_t>;
    DIOPI_HD State start() const { return State(0); }
    DIOPI_HD State step(State sum, T value) const { return sum + cast<State>(value); }
    DIOPI_HD State join(State a, State b) const { return a + b; }
    DIOPI_HD Result finish(State sum, int64_t) const { return static_cast<Result>(sum); }
};

template <class T, class Fold>
void launch_fold(diopiContextHandle_t ctx, const TensorView& out, const TensorView& input, DimSet dims,
                 const Fold& fold) {
    require_storable(out);
    const ReductionSpace<1> space = reduction_space(out, input, dims);
    if constexpr (is_float<T>) {  // integers are rarely reduced in bulk, and each form costs compile time
        using Columns = ColumnFoldTask<Fold, T>;
        const bool along_outputs = space.outer.inner_stride(1) == 1 && space.outer.inner_size() >= 16;
        if (along_outputs && space.inner.inner_stride(0) != 1) {
            const Columns task{space, out, input.as<T>(), fold};
            for_each(ctx, task.blocks(), task);
            return;
        }
    }
    for_each(ctx, space.outer.numel, FoldTask<Fold, T>{space, out, input.as<T>(), fold});
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_REDUCE_H_
