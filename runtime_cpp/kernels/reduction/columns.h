// Reductions of the columns of dense memory, e.g. of channels that are innermost: a thread has a pack of neighbouring
// columns, so that each access of memory is a whole one. Threads share the rows; what each finds is joined as parts are.
#pragma once

#include <diopi/diopirt.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "core/team.h"
#include "core/tensor.h"
#include "core/workspace.h"
#include "space/access.h"
#include "space/packed_rows.h"
#include "space/rows.h"

namespace diopi::kernels {

// What columns are read by: operands of one type without more digits than float32 has.
template <class Access>
constexpr bool kReadsColumns = std::is_same_v<Access, HalvesAccess> || std::is_same_v<Access, TypedAccess<float>>;

// Whether a reduction has ColumnAccess, column_operands(), the tensors that it reads, ColumnState<T>, which is small and
// becomes a State, and column_states<T, width>(column, rows, columns, states), which reduces `width` columns from `column`
// on in the rows of a thread.
template <class Reduction, class = void>
constexpr bool kReducesColumns = false;
template <class Reduction>
constexpr bool kReducesColumns<Reduction, std::void_t<typename Reduction::ColumnAccess>> =
    !Team::kAlone && kReadsColumns<typename Reduction::ColumnAccess>;

// Calls body(row, packs), of each operand one, for the rows of a thread.
template <int N, class T, class Body, int width = kRowPack<T>>
DIOPI_HD_INLINED void for_each_pack(const T* const (&from)[N], const Stripe& rows, int64_t columns, Body&& body) {
    DIOPI_UNROLL_LOADS
    for (int64_t row = rows.first; row < rows.end; row += rows.step) {
        Pack<T, width> packs[N];
        DIOPI_UNROLL
        for (int n = 0; n < N; ++n) packs[n] = load_pack<T, width>(from[n] + row * columns);
        body(row, packs);
    }
}

template <class Reduction, class T>
struct ColumnsTask {
    using State = typename Reduction::template ColumnState<T>;
    static constexpr int kWidth = kRowPack<T>;

    Reduction reduction;
    int64_t columns, rows, parts;
    State* states;  // [part, column]

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t packs = columns / kWidth, part = i / packs, column = (i - part * packs) * kWidth;
        Pack<State, kWidth> found;
        reduction.template column_states<T, kWidth>(column, Stripe{part, parts, rows}, columns, found.at);
        store_pack(states + part * columns + column, found);
    }
};

// Into how many parts the rows fall, by sizes alone, so that results are those of any chip.
inline int64_t column_parts(int64_t packs, int64_t rows) {
    constexpr int64_t threads = 1 << 16;  // that keep a chip busy
    constexpr int64_t fewest = 16;  // rows whose time is worth that of joining a part
    const int64_t wanted = threads / packs, possible = rows / fewest, parts = wanted < possible ? wanted : possible;
    return parts < 1 ? 1 : parts;
}

// Whether operands, the last ones of the outer space, lie as rows of `columns` elements each, which packs of `bytes` divide.
template <int M, int N>
bool are_packed_columns(const TensorView* operands, const Space<M>& outer, const Space<N>& inner, int64_t bytes) {
    if (outer.ndim != 1 || inner.ndim != 1) return false;
    for (int n = 0; n < N; ++n) {
        if (outer.strides[M - N + n][0] != 1 || inner.strides[n][0] != outer.numel) return false;
        if (outer.numel * element_size(operands[n].dtype) % bytes != 0) return false;
        if (reinterpret_cast<uintptr_t>(operands[n].data) % static_cast<uintptr_t>(bytes) != 0) return false;
    }
    return true;
}

// Reduces the parts of all columns and calls join(parts, states); false where the operands do not lie so.
template <class Reduction, class Join>
bool reduce_columns(Context ctx, const Reduction& reduction, Join&& join) {
    using Access = typename Reduction::ColumnAccess;
    using Elements = std::conditional_t<std::is_same_v<Access, HalvesAccess>, Types<Half, BFloat16>, Types<float>>;
    const auto operands = reduction.column_operands();
    const int64_t columns = reduction.space.outer.numel, rows = reduction.space.inner.numel;
    if (rows * columns == 0 || !are_packed_columns(operands.data(), reduction.space.outer, reduction.space.inner, 16))
        return false;
    dispatch<Elements>(operands[0].dtype, [&](auto type) {
        using Task = ColumnsTask<Reduction, typename decltype(type)::type>;
        const int64_t packs = columns / Task::kWidth, parts = column_parts(packs, rows);
        auto* const states = workspace_of<typename Task::State>(ctx, parts * columns);
        for_each(ctx, parts * packs, Task{reduction, columns, rows, parts, states});
        join(parts, states);
    });
    return true;
}

}  // namespace diopi::kernels
