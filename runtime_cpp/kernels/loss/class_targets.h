// The target of a classification loss: one class per line of the input, some of them ignored, each class with a weight.
#pragma once

#include "core/team.h"
#include "core/tensor.h"
#include "core/workspace.h"
#include "math/math.h"
#include "partial_sums.h"
#include "space/index.h"

namespace diopi::kernels {

// The classes of [N, C, d1, ...] lie along dimension 1, those of [C] along dimension 0.
inline int class_dim(const TensorView& input) {
    require(input.ndim >= 1, "a classification loss needs an input with a dimension of classes");
    return input.ndim == 1 ? 0 : 1;
}

struct ClassTargets {
    static constexpr int64_t kIgnored = -1;
    static constexpr int64_t kInvalid = -2;

    TensorView target;
    Space<1> space;
    TensorView weight;  // may be undefined
    int64_t classes;
    int64_t ignore_index;

    ClassTargets(const TensorView& labels, const TensorView& weights, int64_t lines, int64_t class_count,
                 int64_t ignored)
        : target(labels),
          space(space_of(labels)),
          weight(weights),
          classes(class_count),
          ignore_index(ignored) {
        if (!is_in<Integer>(labels.dtype)) fail_dtype(labels.dtype);
        require(labels.numel == lines, "the target has %lld elements, the input %lld lines of classes", labels.numel,
                lines);
        require_weight();
    }

    void require_weight() const {
        if (!weight.defined()) return;
        require_storable(weight);
        require(weight.ndim == 1 && weight.sizes[0] == classes, "%lld classes need as many weights, not %lld", classes,
                weight.numel);
    }

    // A class, kIgnored or kInvalid.
    DIOPI_HD int64_t get(int64_t line) const { return known(load_as<int64_t>(target, space.offset(line))); }

    DIOPI_HD int64_t known(int64_t label) const {
        if (label == ignore_index) return kIgnored;
        return label < 0 || label >= classes ? kInvalid : label;
    }

    DIOPI_HD double weight_of(int64_t label) const {
        return weight.defined() ? load_as<double>(weight, label * weight.strides[0]) : 1.0;
    }

    DIOPI_HD double total_weight(const Team& team) const {
        double total = 0;
        for (int64_t c = team.rank(); c < classes; c += team.size()) total += weight_of(c);
        return team.reduce(total, Plus{});
    }
};

namespace detail {

struct InvalidTarget {
    int64_t found;
    int64_t label;
};

struct ValidateTask {
    ClassTargets targets;
    int64_t lines;
    InvalidTarget* result;

    DIOPI_HD void operator()(int64_t) const {
        *result = {0, 0};
        for (int64_t line = 0; line < lines && result->found == 0; ++line) {
            if (targets.get(line) != ClassTargets::kInvalid) continue;
            *result = {1, load_as<int64_t>(targets.target, targets.space.offset(line))};
        }
    }
};

}  // namespace detail

// The weights of the lines' classes.
struct LabelWeight {
    ClassTargets targets;
    DIOPI_HD Weighted operator()(int64_t line) const {
        const int64_t label = targets.get(line);
        return {0, label < 0 ? 0.0 : targets.weight_of(label)};
    }
};

// Their sum, which a mean is divided by; undefined for another reduction.
inline TensorView total_weight_of(Context ctx, const ClassTargets& targets, int64_t lines, diopiReduction_t reduction) {
    if (reduction != ReductionMean) return undefined_view();
    const TensorView total = temporary(ctx, nullptr, 0, diopi_dtype_float64);
    sum_terms(ctx, lines, LabelWeight{targets}, StoreWeight{total.as<double>()});
    return total;
}

template <class Term>
struct LineLossTask {
    Term term;
    TensorView out;
    Space<1> out_space;
    DIOPI_HD void operator()(int64_t line) const { store_as(out, out_space.offset(line), term(line).value); }
};

// What a loss gives: term(line) of each line, or the sum or the mean of all.
template <class Term>
void store_loss(Context ctx, int64_t lines, const Term& term, diopiReduction_t reduction, const TensorView& out,
                const TensorView& total_weight = undefined_view()) {
    require_storable(out);
    if (reduction != ReductionNone)
        return sum_terms(ctx, lines, term, StoreReduced{out, total_weight, reduction == ReductionMean});
    require(out.numel == lines, "the output of a loss without reduction has %lld elements, not %lld", out.numel, lines);
    for_each(ctx, lines, LineLossTask<Term>{term, out, space_of(out)});
}

// Fails for a class that does not exist, where reading the device's answer is cheap; elsewhere such a loss is NaN.
inline void require_valid(Context ctx, const ClassTargets& targets, int64_t lines) {
    if constexpr (launch::kSynchronous) {
        auto* result = workspace_of<detail::InvalidTarget>(ctx, 1);
        for_each(ctx, 1, detail::ValidateTask{targets, lines, result});
        detail::InvalidTarget invalid{};
        check(launch::copy_to_host(stream_of(ctx), &invalid, result, sizeof invalid),
              "the device did not give back a check's result");
        require(invalid.found == 0, "Target %lld is out of bounds: there are %lld classes", invalid.label,
                targets.classes);
    }
}

}  // namespace diopi::kernels
