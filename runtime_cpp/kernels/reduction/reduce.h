// Reductions: the loop that folds the elements of each output.
#pragma once

#include <diopi/diopirt.h>

#include <type_traits>
#include <utility>

#include "core/team.h"
#include "core/tensor.h"
#include "core/view.h"
#include "folds.h"
#include "parts.h"
#include "reduction_space.h"
#include "space/strides.h"

namespace diopi::kernels {

// Values: what is read of an input, a pointer to its elements. A device tells the rarer types apart at each load, which
// it waits for anyway.
struct HalfValues {
    const uint16_t* bits;
    bool brain;  // bfloat16

    DIOPI_HD float operator[](int64_t k) const { return brain ? BFloat16::decode(bits[k]) : Half::decode(bits[k]); }
    DIOPI_HD HalfValues operator+(int64_t offset) const { return {bits + offset, brain}; }
};

struct NarrowValues {
    const void* elements;
    diopiDtype_t dtype;
    int64_t first;

    DIOPI_HD int64_t operator[](int64_t k) const {
        switch (dtype) {
            case diopi_dtype_int32: return static_cast<const int32_t*>(elements)[first + k];
            case diopi_dtype_int16: return static_cast<const int16_t*>(elements)[first + k];
            case diopi_dtype_int8: return static_cast<const int8_t*>(elements)[first + k];
            default: return static_cast<const uint8_t*>(elements)[first + k];  // of a bool, too
        }
    }
    DIOPI_HD NarrowValues operator+(int64_t offset) const { return {elements, dtype, first + offset}; }
};

template <class Values>
using ElementOf = std::remove_const_t<std::remove_reference_t<decltype(std::declval<Values>()[0])>>;

template <class T>
auto values_of(const TensorView& input) {
    if constexpr (Team::kAlone || std::is_floating_point_v<T> || std::is_same_v<T, int64_t>) {
        return static_cast<const T*>(input.data);
    } else if constexpr (is_half<T>) {
        return HalfValues{static_cast<const uint16_t*>(input.data), std::is_same_v<T, BFloat16>};
    } else {
        return NarrowValues{input.data, input.dtype, 0};
    }
}

// Calls f with the values of a tensor whose dtype is one of the set.
template <class Set, class F>
void dispatch_values(const TensorView& input, F&& f) {
    dispatch<Set>(input.dtype, [&](auto type) { f(values_of<typename decltype(type)::type>(input)); });
}

// Calls run(values, elements, stride, first) with a stride as of with_stride() for each row of `inner` below `base` in
// which this thread of a team has elements; `first` is the number of the row's first element.
template <class Values, class TeamOrAlone, class Run>
DIOPI_HD inline void for_each_run(const Space<1>& inner, const Values& base, const TeamOrAlone& team, Run&& run) {
    if (inner.numel == 0) return;
    const int64_t count = inner.inner_size(), stride = inner.inner_stride(0);
    const auto mine = row_stripes(team, inner.numel / count, count);
    with_stride(stride, [&](auto step) {
        for (int64_t row = mine.rows.first; row < mine.rows.end; row += mine.rows.step)
            run(row == 0 ? base : base + inner.run_offsets(row).at[0], mine.elements, step, row * count);
    });
}

// How a host folds long runs of elements, where each form costs compile time: the chains of neighbours, those of
// elements that lie apart, and whether outputs that are neighbours are folded some at a time.
template <int dense_lanes, int scattered_lanes, bool in_columns>
struct FoldForms {
    static constexpr int kDense = dense_lanes, kScattered = scattered_lanes;
    static constexpr bool kColumns = in_columns;
};

// Where scattered elements are rarely folded, and for a fold that is no vector code.
using DenseFold = FoldForms<kLanes, kFewLanes, true>;
using ScalarFold = FoldForms<kFewLanes, kFewLanes, true>;
// Integers are rarely reduced in bulk.
template <class T>
using UsualFold = std::conditional_t<is_float<T>, FoldForms<kLanes, kLanes, true>, FoldForms<kLanes, kFewLanes, false>>;

// One fold per output: `Fold` has State, start(), step(State, value), join(State, State) and finish(State, count).
template <class Fold>
struct FoldJoining {
    using State = typename Fold::State;

    ReductionSpace<1> space;
    TensorView out;
    Fold fold;

    DIOPI_HD State start() const { return fold.start(); }
    DIOPI_HD State join(const State& a, const State& b) const { return fold.join(a, b); }
    DIOPI_HD void finish(int64_t i, const State& state) const {
        store_as(out, space.outer.offset(i), fold.finish(state, space.inner.numel));
    }
};

template <class Fold, class Values, class Forms>
struct FoldReduction : FoldJoining<Fold> {
    TensorView tensor;
    Values input;

    DIOPI_HD typename Fold::State state(int64_t, const Part<1>& part, const Team& team) const {
        using State = typename Fold::State;
        const Fold& fold = this->fold;
        const auto join = [&](State a, State b) { return fold.join(a, b); };
        State total = fold.start();
        const auto add = [&](const Values& values, auto mine, auto stride, int64_t) {
            constexpr int lanes = std::is_same_v<decltype(stride), UnitStride> ? Forms::kDense : Forms::kScattered;
            const auto step = [&](State found, int64_t k) { return fold.step(found, values[k * stride]); };
            const State run = fold_of_run<lanes>(mine, fold.start(), step, join);
            total = fold.join(total, run);
        };
        for_each_run(part.inner, input + part.base.at[0], team, add);
        return team.reduce(total, join);
    }

    using ColumnAccess =
        std::conditional_t<std::is_same_v<Values, HalfValues>, HalvesAccess, TypedAccess<ElementOf<Values>>>;
    std::array<TensorView, 1> column_operands() const { return {tensor}; }
    template <class T>
    using ColumnState = typename Fold::State;
    template <class T, int width>
    DIOPI_HD_INLINED void column_states(int64_t column, const Stripe& rows, int64_t columns,
                                        typename Fold::State* states) const {
        typename Fold::State found[width];
        const T* const from[1] = {tensor.as<T>() + column};
        DIOPI_UNROLL
        for (int k = 0; k < width; ++k) found[k] = this->fold.start();
        for_each_pack(from, rows, columns, [&](int64_t, const Pack<T, width>(&packs)[1]) {
            DIOPI_UNROLL
            for (int k = 0; k < width; ++k)
                found[k] = this->fold.step(found[k], cast<ElementOf<Values>>(packs[0].at[k]));
        });
        DIOPI_UNROLL
        for (int k = 0; k < width; ++k) states[k] = found[k];
    }
};

// Neighbouring outputs at a time, where the input's memory runs along the outputs: each row is then read once.
template <int Outputs>
struct ColumnBlocks {
    static constexpr int kColumns = 64;

    ReductionSpace<Outputs> space;

    DIOPI_HD int64_t blocks_of_a_run() const { return (space.outer.inner_size() + kColumns - 1) / kColumns; }
    int64_t blocks() const { return space.outer.numel / space.outer.inner_size() * blocks_of_a_run(); }

    // Calls f(first output, their number, a constant for whole blocks).
    template <class F>
    DIOPI_HD void visit(int64_t block, F&& f) const {
        const int64_t length = space.outer.inner_size(), run = block / blocks_of_a_run();
        const int64_t column = (block - run * blocks_of_a_run()) * kColumns;
        if (length - column >= kColumns) {
            f(run * length + column, std::integral_constant<int, kColumns>{});
        } else {
            f(run * length + column, static_cast<int>(length - column));
        }
    }

    // Calls f(number, row) for each row of the elements of an output, with that of the first output at `base`.
    template <class T, class F>
    DIOPI_HD void each_row(const T* base, F&& f) const {
        const int64_t count = space.inner.inner_size(), stride = space.inner.inner_stride(0);
        for (int64_t first = 0; first < space.inner.numel; first += count) {
            const T* row = base + space.inner.run_offsets(first / count).at[0];
            for (int64_t k = 0; k < count; ++k, row += stride) f(first + k, row);
        }
    }
};

template <class Fold, class T>
struct ColumnFoldTask : ColumnBlocks<1> {
    TensorView out;
    const T* input;
    Fold fold;

    DIOPI_HD void operator()(int64_t block) const {
        visit(block, [&](int64_t first, auto width) {
            typename Fold::State states[kColumns];
            for (int c = 0; c < kColumns; ++c) states[c] = fold.start();
            const Offsets<2> base = space.outer.offsets(first);
            each_row(input + base.at[1], [&](int64_t, const T* row) {
                for (int c = 0; c < width; ++c) states[c] = fold.step(states[c], row[c]);
            });
            const int64_t step = space.outer.inner_stride(0);
            for (int c = 0; c < width; ++c)
                store_as(out, base.at[0] + c * step, fold.finish(states[c], space.inner.numel));
        });
    }
};

// `values` are those of the input.
template <class Forms, class Values, class Fold>
void launch_fold(Context ctx, const TensorView& out, const TensorView& input, const Values& values, DimSet dims,
                 const Fold& fold) {
    require_storable(out);
    const ReductionSpace<1> space = reduction_space(out, input, dims);
    if constexpr (Team::kAlone && Forms::kColumns) {
        if (along_outputs(space.outer, space.inner, 16)) {
            const ColumnFoldTask<Fold, ElementOf<Values>> task{{space}, out, values, fold};
            for_each(ctx, task.blocks(), task);
            return;
        }
    }
    const FoldJoining<Fold> joining{space, out, fold};
    run_reduction(ctx, FoldReduction<Fold, Values, Forms>{joining, input, values}, joining);
}

}  // namespace diopi::kernels
