// The sum of a term per index, in blocks that run side by side, then one team that adds the blocks.
#pragma once

#include <diopi/diopirt.h>

#include <type_traits>

#include "core/team.h"
#include "core/tensor.h"
#include "core/workspace.h"
#include "space/index.h"
#include "space/strides.h"

namespace diopi::kernels {

// A loss and the weight with which it counts in a mean.
struct Weighted {
    double value;
    double weight;

    DIOPI_HD Weighted operator+(const Weighted& other) const { return {value + other.value, weight + other.weight}; }
    DIOPI_HD void operator+=(const Weighted& other) {
        value += other.value;
        weight += other.weight;
    }
};

template <class Term>
struct PartialSumTask {
    static constexpr int64_t kBlock = 2048;

    int64_t count;
    Weighted* partial;
    Term term;

    DIOPI_HD void operator()(int64_t block, const Team& team = {}) const {
        const int64_t first = block * kBlock;
        const int64_t last = first + kBlock < count ? first + kBlock : count;
        const auto mine = stripe_of(team, last - first);
        Weighted sum{0, 0};
        if constexpr (std::is_invocable_v<Term, int64_t, decltype(mine)>) {
            sum = term(first, mine);
        } else {
            for (int64_t k = mine.first; k < mine.end; k += mine.step) sum += term(first + k);
        }
        sum = team.reduce(sum, Plus{});
        if (team.rank() == 0) partial[block] = sum;
    }
};

template <class Finish>
struct TotalTask {
    int64_t blocks;
    const Weighted* partial;
    Finish finish;

    DIOPI_HD void operator()(int64_t, const Team& team = {}) const {
        Weighted total{0, 0};
        for (int64_t block = team.rank(); block < blocks; block += team.size()) total += partial[block];
        total = team.reduce(total, Plus{});
        if (team.rank() == 0) finish(total);
    }
};

// finish(the sum of term(i) for i in [0, count)), both called on the device. A term may also take the
// first index of a block and elements of it, and give their sum.
template <class Term, class Finish>
void sum_terms(Context ctx, int64_t count, const Term& term, const Finish& finish) {
    const int64_t blocks = (count + PartialSumTask<Term>::kBlock - 1) / PartialSumTask<Term>::kBlock;
    Weighted* partial = workspace_of<Weighted>(ctx, blocks);
    for_each_by_teams(ctx, blocks, PartialSumTask<Term>::kBlock, PartialSumTask<Term>{count, partial, term});
    for_each_by_teams(ctx, 1, blocks, TotalTask<Finish>{blocks, partial, finish});
}

// What a loss writes at the end: the sum, or the mean by weight (NaN without any).
struct StoreReduced {
    TensorView out;
    TensorView total_weight;  // may be undefined
    bool mean;

    DIOPI_HD void operator()(const Weighted& total) const {
        store_as(out, 0, mean ? total.value / total.weight : total.value);
        if (total_weight.defined()) store_as(total_weight, 0, total.weight);
    }
};

struct StoreWeight {
    double* target;
    DIOPI_HD void operator()(const Weighted& total) const { *target = total.weight; }
};

// The gradient that reaches one term: its own, or a share of the only one.
struct GradientSource {
    TensorView grad_output;
    Space<1> space;  // of grad_output, without a reduction
    diopiReduction_t reduction;
    TensorView total_weight;  // undefined where every term weighs one
    double count;

    GradientSource(const TensorView& gradient, diopiReduction_t how, int64_t terms, const TensorView& weight)
        : grad_output(gradient),
          reduction(how),
          total_weight(weight),
          count(static_cast<double>(terms)) {
        require_storable(gradient);
        if (how == ReductionNone) {
            require(gradient.numel == terms, "grad_output has %lld elements, not %lld",
                    static_cast<long long>(gradient.numel), static_cast<long long>(terms));
            space = space_of(gradient);
        } else {
            require(gradient.numel == 1, "grad_output of a reduced loss has %lld elements, not one",
                    static_cast<long long>(gradient.numel));
        }
    }

    DIOPI_HD double get(int64_t term) const {
        if (reduction == ReductionNone) return load_as<double>(grad_output, space.offset(term));
        const double whole = load_as<double>(grad_output, 0);
        if (reduction == ReductionSum) return whole;
        return whole / (total_weight.defined() ? load_as<double>(total_weight, 0) : count);
    }
};

}  // namespace diopi::kernels
