// Normalization of dense rows by teams: each element is read once, by whole packs, and kept until its row's moments are known.
#pragma once

#include "normalization.h"
#include "space/packed_rows.h"

namespace diopi::kernels {

// `Kept` takes the moments of a row.
template <class T, class Kept>
struct PackedNormTask {
    using C = ComputeType<T>;
    using Sum = RowSum<T>;
    static constexpr int kWidth = kRowPack<T>;

    Space<4> outer;  // out, input, weight, bias
    TensorView out, input, weight, bias;
    int64_t columns;
    bool centered;  // layer normalization; else root mean square
    Kept kept;
    Sum eps;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = outer.offsets(row);
        with_row_packs<kWidth>(team, columns, [&](const auto& mine) { normalize(row, base, team, mine); });
    }

    template <class Packs>
    DIOPI_HD_INLINED void normalize(int64_t row, const Offsets<4>& base, const Team& team, const Packs& mine) const {
        Pack<T, kWidth> values[Packs::kSlots];
        const T* const from = input.as<T>() + base.at[1];
        const auto fetch = [&](int slot, int64_t column) { values[slot] = load_pack<T, kWidth>(from + column); };
        const auto count = static_cast<Sum>(columns);
        mine.hold(fetch);
        Sum mean = 0;
        if (centered) {
            const auto value = [&](int slot, int64_t, int k) { return cast<Sum>(values[slot].at[k]); };
            mean = team.reduce(mine.template sum<Sum>(fetch, value), Plus{}) / count;
        }
        // about the mean, so that nothing cancels
        const auto square = [&](int slot, int64_t, int k) {
            const Sum distance = cast<Sum>(values[slot].at[k]) - mean;
            return distance * distance;
        };
        const Sum variance = team.reduce(mine.template sum<Sum>(fetch, square), Plus{}) / count;
        const Sum scale = Sum(1) / math::sqrt(variance + eps);
        if (team.rank() == 0) kept.set(row, double(mean), double(scale));
        mine.each(fetch, [&](int slot, int64_t column) {
            store(base, column, values[slot], static_cast<C>(mean), static_cast<C>(scale));
        });
    }

    DIOPI_HD_INLINED void store(const Offsets<4>& base, int64_t column, const Pack<T, kWidth>& from, C center,
                                C factor) const {
        C results[kWidth];
        DIOPI_UNROLL
        for (int k = 0; k < kWidth; ++k) results[k] = (cast<C>(from.at[k]) - center) * factor;
        if (weight.defined()) {
            const auto factors = load_pack<T, kWidth>(weight.as<T>() + base.at[2] + column);
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) results[k] *= cast<C>(factors.at[k]);
        }
        if (bias.defined()) {
            const auto addends = load_pack<T, kWidth>(bias.as<T>() + base.at[3] + column);
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) results[k] += cast<C>(addends.at[k]);
        }
        Pack<T, kWidth> stored;
        DIOPI_UNROLL
        for (int k = 0; k < kWidth; ++k) stored.at[k] = cast<T>(results[k]);
        store_pack<T, kWidth>(out.as<T>() + base.at[0] + column, stored);
    }
};

// The gradient of a row's input.
template <class T>
struct PackedNormGradientTask {
    using C = ComputeType<T>;
    using Sum = RowSum<T>;
    static constexpr int kWidth = kRowPack<T>;

    Space<4> outer;  // grad_input, input, weight, grad_output
    TensorView grad_input, input, weight, grad_output;
    int64_t columns;
    bool centered;
    PerRow mean;
    PerRow scale;

    using Sums = TwoSums<Sum>;  // of a row's weighted gradients, and of those times the normalized input

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = outer.offsets(row);
        const Sum center = centered ? static_cast<Sum>(mean.get(row)) : Sum(0);
        const Sum factor = static_cast<Sum>(scale.get(row));
        with_row_packs<kWidth>(team, columns, [&](const auto& mine) { propagate(base, team, mine, center, factor); });
    }

    template <class Packs>
    DIOPI_HD_INLINED void propagate(const Offsets<4>& base, const Team& team, const Packs& mine, Sum center,
                                    Sum factor) const {
        Pack<T, kWidth> values[Packs::kSlots], gradients[Packs::kSlots], factors[Packs::kSlots];
        const T* const from = input.as<T>() + base.at[1];
        const T* const gradients_from = grad_output.as<T>() + base.at[3];
        const T* const factors_from = weight.as<T>() + base.at[2];
        const bool weighs = weight.defined();
        const auto fetch = [&](int slot, int64_t column) {
            values[slot] = load_pack<T, kWidth>(from + column);
            gradients[slot] = load_pack<T, kWidth>(gradients_from + column);
            if (weighs) factors[slot] = load_pack<T, kWidth>(factors_from + column);
        };
        const auto gradient = [&](int slot, int k) {
            const Sum value = cast<Sum>(gradients[slot].at[k]);
            return weighs ? value * cast<Sum>(factors[slot].at[k]) : value;
        };
        const auto normalized = [&](int slot, int k) { return (cast<Sum>(values[slot].at[k]) - center) * factor; };
        mine.hold(fetch);
        const auto term = [&](int slot, int64_t, int k) {
            const Sum weighted = gradient(slot, k);
            return Sums{weighted, weighted * normalized(slot, k)};
        };
        const Sums sums = team.reduce(mine.template sum<Sums>(fetch, term), Plus{});
        const auto count = static_cast<Sum>(columns);
        const Sum mean_gradient = centered ? sums.first / count : Sum(0), slope = sums.second / count;
        mine.each(fetch, [&](int slot, int64_t column) {
            Pack<T, kWidth> results;
            DIOPI_UNROLL
            for (int k = 0; k < kWidth; ++k) {
                results.at[k] = cast<T>(factor * (gradient(slot, k) - mean_gradient - normalized(slot, k) * slope));
            }
            store_pack<T, kWidth>(grad_input.as<T>() + base.at[0] + column, results);
        });
    }
};

}  // namespace diopi::kernels
