// What batch normalizations do with channels: vectors with a value per channel, sums over the elements of each, and
// changes of its elements by what the sums give.
#pragma once

#include <algorithm>

#include "copy/common_dtype.h"
#include "core/view.h"
#include "normalization.h"
#include "reduction/parts.h"
#include "space/access.h"
#include "space/packed_rows.h"
#include "space/rows.h"
#include "space/small_space.h"

namespace diopi::kernels {

constexpr uint32_t kChannelDim = 1u << 1;

// A vector with one value per channel; callers may leave any of them out, as null or as a tensor without elements.
struct PerChannel : PerRow {
    PerChannel(ConstTensor handle, int64_t channels) : PerRow(vector_of(view(handle), channels), channels) {}

    DIOPI_HD double get(int64_t channel, double otherwise) const {
        return defined() ? PerRow::get(channel) : otherwise;
    }
    // Moves a running average towards `value`.
    DIOPI_HD void blend(int64_t channel, double value, double momentum) const {
        set(channel, (1.0 - momentum) * get(channel, 0.0) + momentum * value);
    }

private:
    static TensorView vector_of(const TensorView& tensor, int64_t channels) {
        if (!tensor.defined() || (tensor.numel == 0 && channels > 0)) return undefined_view();
        require(tensor.ndim == 1 && tensor.sizes[0] == channels,
                "a normalization has %lld channels, but a vector of %lld values", channels, tensor.numel);
        return tensor;
    }
};

inline int64_t channels_of(const TensorView& input) {
    require(input.ndim >= 2, "batch normalization needs at least two dimensions, the input has %d", input.ndim);
    return input.sizes[1];
}

// Changes of a channel's elements by constants of type C. apply() works on an element of each tensor of a task; that of
// tensor n stands at(n) elements behind its first. The first kResults tensors are written.

// Of out and input: out = (input - center) * scale + shift
template <class C>
struct Scaling {
    static constexpr int kResults = 1;

    C center, scale, shift;

    template <class Access, class At>
    DIOPI_HD_INLINED void apply(const TensorView* tensors, const At& at, int to = 0, int from = 1) const {
        const C value = Access::template load<C>(tensors[from], at(from));
        Access::store(tensors[to], at(to), (value - center) * scale + shift);
    }
};

// Of grad_input, input and grad_output: grad_input = (grad_output - mean - normalized input * slope) * factor
template <class C>
struct Propagation {
    static constexpr int kResults = 1;

    C center, scale, mean, slope, factor;

    template <class Access, class At>
    DIOPI_HD_INLINED void apply(const TensorView* tensors, const At& at) const {
        const C normalized = (Access::template load<C>(tensors[1], at(1)) - center) * scale;
        const C gradient = Access::template load<C>(tensors[2], at(2));
        Access::store(tensors[0], at(0), (gradient - mean - normalized * slope) * factor);
    }
};

// A reduction of no elements, for changes that need none.
struct NothingReduced {
    struct State {};

    Rows<1> space;

    explicit NothingReduced(int64_t channels) { space.outer.append(channels, {0}); }
    DIOPI_HD State start() const { return {}; }
    DIOPI_HD State join(State, State) const { return {}; }
    DIOPI_HD State state(int64_t, const Part<1>&, const Team&) const { return {}; }
};

using GradientSums = TwoSums<double>;  // of grad_output, and of it times the normalized input
template <class T>
using FewGradientSums = TwoSums<RowSum<T>>;  // of few rows

// Normalized is (input - center) * scale. A thread gets the sums of its elements only.
template <class Access>
DIOPI_HD inline GradientSums gradient_sums(const Space<2>& inner, const Offsets<2>& base, const Team& team,
                                           const TensorView& input, const TensorView& grad_output, double center,
                                           double scale) {
    GradientSums sums{0, 0};
    const int64_t strides[2] = {inner.inner_stride(0), inner.inner_stride(1)};
    with_strides(strides, [&](const auto& steps) {
        constexpr int lanes = kLanesOf<std::decay_t<decltype(steps)>>;
        for_each_inner_run(inner, base, team, [&](const Offsets<2>& at, const auto& mine) {
            const auto gradient = [&](int64_t k) {
                return Access::template load<double>(grad_output, at.at[1] + k * steps[1]);
            };
            const auto product = [&](int64_t k) {
                const double value = Access::template load<double>(input, at.at[0] + k * steps[0]);
                return gradient(k) * (value - center) * scale;
            };
            if constexpr (Team::kAlone) {
                sums.first += sum_of_run<lanes>(mine, gradient);
                sums.second += sum_of_run<lanes>(mine, product);
            } else {
                sums = sums + sum_of_run<lanes>(mine, [&](int64_t k) { return GradientSums{gradient(k), product(k)}; });
            }
        });
    });
    return sums;
}

// The sums of `width` columns in the rows of a thread; factor(row)(k, value) is what the gradient is multiplied by.
template <class T, int width, class Factor>
DIOPI_HD_INLINED void sum_packs(const TensorView& input, const TensorView& grad_output, int64_t column,
                                const Stripe& rows, int64_t columns, FewGradientSums<T>* states, Factor&& factor) {
    RowSum<T> sums[width] = {}, products[width] = {};
    const T* const from[2] = {input.as<T>() + column, grad_output.as<T>() + column};
    for_each_pack(from, rows, columns, [&](int64_t row, const Pack<T, width>(&packs)[2]) {
        const auto factor_of = factor(row);
        DIOPI_UNROLL
        for (int k = 0; k < width; ++k) {
            const auto gradient = cast<RowSum<T>>(packs[1].at[k]);
            sums[k] += gradient;
            products[k] += gradient * factor_of(k, cast<RowSum<T>>(packs[0].at[k]));
        }
    });
    DIOPI_UNROLL
    for (int k = 0; k < width; ++k) states[k] = {sums[k], products[k]};
}

// About `center`, with a scale of one.
template <class Access>
struct GradientSumsReduction {
    using State = GradientSums;

    Rows<2> space;
    TensorView input, grad_output;
    PerChannel center;

    DIOPI_HD GradientSums start() const { return {0, 0}; }
    DIOPI_HD GradientSums join(const GradientSums& a, const GradientSums& b) const { return a + b; }
    DIOPI_HD GradientSums state(int64_t channel, const Part<2>& part, const Team& team) const {
        return team.reduce(
            gradient_sums<Access>(part.inner, part.base, team, input, grad_output, center.get(channel, 0.0), 1.0),
            Plus{});
    }

    using ColumnAccess = Access;
    std::array<TensorView, 2> column_operands() const { return {input, grad_output}; }
    template <class T>
    using ColumnState = FewGradientSums<T>;
    template <class T, int width>
    DIOPI_HD_INLINED void column_states(int64_t column, const Stripe& rows, int64_t columns,
                                        ColumnState<T>* states) const {
        using Sum = RowSum<T>;
        Sum middle[width];
        DIOPI_UNROLL
        for (int k = 0; k < width; ++k) middle[k] = static_cast<Sum>(center.get(column + k, 0.0));
        sum_packs<T, width>(input, grad_output, column, rows, columns, states,
                            [&](int64_t) { return [&](int k, Sum value) { return value - middle[k]; }; });
    }
};

static_assert(Team::kAlone || kReducesColumns<GradientSumsReduction<HalvesAccess>>,
              "by packs where channels are innermost");

// A channel per call, on a host: its elements stay in the caches.
template <class Access, int N, class Reduction>
struct ChannelTask {
    Rows<N> rows;
    TensorView tensors[N];
    Reduction reduction;

    DIOPI_HD void operator()(int64_t channel) const {
        const auto whole = whole_of(reduction.space.outer, reduction.space.inner, channel);
        const auto change = reduction.finish(channel, reduction.state(channel, whole, Team()));
        if (!tensors[0].defined()) return;
        int64_t strides[N];
        for (int n = 0; n < N; ++n) strides[n] = tensors[n].defined() ? rows.inner.inner_stride(n) : 1;
        with_strides(strides, [&](const auto& steps) {
            for_each_inner_run(rows.inner, rows.outer.offsets(channel), Team(), [&](const Offsets<N>& at, auto mine) {
                each(mine, [&](int64_t k) {
                    change.template apply<Access>(tensors, [&](int n) { return at.at[n] + k * steps[n]; });
                });
            });
        });
    }
};

// `width` neighbouring elements per call. The last operand of the space is the number of their channel.
template <class Access, int N, class Change, int width>
struct ElementTask {
    SmallSpace<N + 1> space;
    TensorView tensors[N];
    const Change* changes;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<N + 1> at = space.offsets(i);
        const Change change = changes[at.at[N]];
        if constexpr (width == 1) {
            change.template apply<Access>(tensors, [&](int n) { return at.at[n]; });
        } else {
            using Element = typename Access::Element;
            Pack<Element, width> packs[N];
            TensorView of_packs[N];
            DIOPI_UNROLL
            for (int n = 0; n < N; ++n) {
                if (n >= Change::kResults)
                    packs[n] = load_pack<Element, width>(tensors[n].template as<Element>() + at.at[n]);
                of_packs[n] = tensors[n];
                of_packs[n].data = packs[n].at;
            }
            DIOPI_UNROLL
            for (int k = 0; k < width; ++k) change.template apply<Access>(of_packs, [&](int) { return k; });
            DIOPI_UNROLL
            for (int n = 0; n < Change::kResults; ++n) {
                if (tensors[n].defined())
                    store_pack<Element, width>(tensors[n].template as<Element>() + at.at[n], packs[n]);
            }
        }
    }
};

template <class Reduction, class Change>
struct KeptChanges : Reduction {
    Change* changes;

    DIOPI_HD void finish(int64_t channel, const typename Reduction::State& state) const {
        changes[channel] = Reduction::finish(channel, state);
    }
};

template <class Access, int width, int N, class Change>
diopiError_t change_part(Context ctx, const Space<N + 1>& part, const TensorView (&tensors)[N], const Change* changes) {
    ElementTask<Access, N, Change, width> task{SmallSpace<N + 1>(part), {}, changes};
    std::copy_n(tensors, N, task.tensors);
    return launch::parallel_for(stream_of(ctx), part.numel / width, task);
}

template <class Access, int N, class Change>
void change_elements(Context ctx, const TensorView (&operands)[N], const Change* changes) {
    static_assert(Change::kResults < N);
    constexpr int width = kRowPack<typename Access::Element>;
    Space<N + 1> space;
    for (int d = 0; d < operands[0].ndim; ++d) {
        int64_t strides[N + 1];
        for (int n = 0; n < N; ++n) strides[n] = operands[n].defined() ? operands[n].strides[d] : 0;
        strides[N] = d == 1 ? 1 : 0;
        space.append(operands[0].sizes[d], strides);
    }
    order_by_stride(space);
    coalesce(space);
    check_launch(for_small_parts(space, Offsets<N + 1>{}, [&](Space<N + 1> part, const Offsets<N + 1>& offsets) {
        TensorView tensors[N];
        const int last = part.ndim - 1;
        bool packs = width > 1 && last >= 0 && part.sizes[last] % width == 0 && part.strides[N][last] == 0;
        for (int n = 0; n < N; ++n) {
            tensors[n] = offsets.at[n] == 0 ? operands[n] : shifted(operands[n], offsets.at[n]);
            packs = packs && (!operands[n].defined() || has_packs(part, n, tensors[n].data, width, 16));
        }
        if (!packs) return change_part<Access, 1>(ctx, part, tensors, changes + offsets.at[N]);
        divide_into_packs(part, width);
        return change_part<Access, width>(ctx, part, tensors, changes + offsets.at[N]);
    }));
}

template <int N>
void require_one_shape(const TensorView (&operands)[N]) {
    for (const TensorView& operand : operands)
        require(!operand.defined() || operand.same_sizes(operands[N - 1]),
                "tensors of a batch normalization differ in shape");
}

// A setting that is a tensor has a value per channel.
template <class Setting>
auto setting_of(const Setting& setting, int64_t channels) {
    if constexpr (std::is_convertible_v<Setting, ConstTensor>) {
        return PerChannel(setting, channels);
    } else {
        return setting;
    }
}

// Reductions have the access as their parameter and are made of the channels of the operands, which come from
// with_common_dtype(), and `settings`.
template <template <class> class Reduction, int N, class... Settings>
void reduce_channels(Context ctx, const TensorView (&operands)[N], const Settings&... settings) {
    require_one_shape(operands);
    const int64_t channels = channels_of(operands[0]);
    const auto rows = rows_of(operands, kChannelDim);
    const Reduction<TypedAccess<float>> joining{rows, setting_of(settings, channels)...};
    dispatch_typed(operands, [&](auto access) {
        run_reduction(ctx, Reduction<decltype(access)>{rows, setting_of(settings, channels)...}, joining);
    });
}

// Changes the elements of each channel as the reduction's finish() says, which gives the change from the channel's
// state; it is made of `settings`. Operands come from with_common_dtype(); results may be undefined.
template <template <class> class Reduction, int N, class... Settings>
void change_channels(Context ctx, const TensorView (&operands)[N], const Settings&... settings) {
    require_one_shape(operands);
    const int64_t channels = channels_of(operands[N - 1]);
    dispatch_typed(operands, [&](auto access) {
        using Access = decltype(access);
        using Joining = Reduction<TypedAccess<typename Access::Compute>>;
        using Reading = std::conditional_t<std::is_base_of_v<NothingReduced, Joining>, Joining, Reduction<Access>>;
        const Reading reduction{setting_of(settings, channels)...};
        if constexpr (Team::kAlone) {
            ChannelTask<Access, N, Reading> task{rows_of(operands, kChannelDim), {}, reduction};
            std::copy_n(operands, N, task.tensors);
            for_each(ctx, channels, task);
        } else {
            using Change = decltype(reduction.finish(0, reduction.start()));
            auto* const changes = workspace_of<Change>(ctx, channels);
            run_reduction(ctx, KeptChanges<Reading, Change>{reduction, changes},
                          KeptChanges<Joining, Change>{{setting_of(settings, channels)...}, changes});
            if (operands[0].defined()) change_elements<Access>(ctx, operands, changes);
        }
    });
}

}  // namespace diopi::kernels
