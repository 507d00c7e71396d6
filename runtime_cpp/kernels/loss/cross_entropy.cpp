// Cross entropy between logits and a class or a distribution per line, with label smoothing and its gradients.
#include <diopi/diopirt.h>

#include "class_targets.h"
#include "core/team.h"
#include "partial_sums.h"
#include "space/lines.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// log(sum of exp(x)) along a line, from the largest element on; each thread gets it.
template <class Elements>
DIOPI_HD double log_sum_exp(const TensorView& input, int64_t base, Elements mine, int64_t stride, const Team& team) {
    double largest = -math::infinity<double>;
    for (int64_t c = mine.first; c < mine.end; c += mine.step)
        largest = math::max(largest, load_as<double>(input, base + c * stride));
    largest = team.reduce(largest, [](double a, double b) { return math::max(a, b); });
    double sum = 0;
    for (int64_t c = mine.first; c < mine.end; c += mine.step)
        sum += math::exp(load_as<double>(input, base + c * stride) - largest);
    return largest + math::log(team.reduce(sum, Plus{}));
}

// A class per line. Smoothing gives each class the share `smoothing / classes`.
struct LabelEntropy {
    Lines<2> lines;  // input, grad_input
    TensorView input;
    ClassTargets targets;
    double smoothing;

    DIOPI_HD Weighted operator()(int64_t line, const Team& team) const {
        const int64_t label = targets.get(line);
        if (label == ClassTargets::kIgnored) return {0, 0};
        if (label == ClassTargets::kInvalid) return {math::quiet_nan<double>, 1};
        const int64_t base = lines.outer.offsets(line).at[0];
        const auto mine = stripe_of(team, lines.count);
        const double total = log_sum_exp(input, base, mine, lines.strides[0], team);
        const double weight = targets.weight_of(label);
        double loss = (1.0 - smoothing) * weight * (total - load_as<double>(input, base + label * lines.strides[0]));
        if (!(smoothing > 0.0)) return {loss, weight};
        if (team.rank() != 0) loss = 0;
        for (int64_t c = mine.first; c < mine.end; c += mine.step) {
            loss += share() * targets.weight_of(c) * (total - load_as<double>(input, base + c * lines.strides[0]));
        }
        return {team.reduce(loss, Plus{}), weight};
    }

    DIOPI_HD void backward(int64_t line, double gradient, const TensorView& grad_input, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        const int64_t label = targets.get(line);
        const Offsets<2> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], mine, lines.strides[0], team);
        const double weight = label < 0 ? 0.0 : (1.0 - smoothing) * targets.weight_of(label);
        const double spread = smoothing > 0.0 ? share() * targets.total_weight(team) : 0.0;
        for (int64_t c = mine.first; c < mine.end; c += mine.step) {
            const double probability = math::exp(load_as<double>(input, base.at[0] + c * lines.strides[0]) - total);
            double slope = weight * (probability - (c == label ? 1.0 : 0.0));
            if (smoothing > 0.0) slope += spread * probability - share() * targets.weight_of(c);
            store_as(grad_input, base.at[1] + c * lines.strides[1], label < 0 ? 0.0 : slope * gradient);
        }
    }

    DIOPI_HD double share() const { return smoothing / static_cast<double>(lines.count); }
};

// A distribution per line.
struct DistributionEntropy {
    Lines<3> lines;  // input, grad_input, target
    TensorView input;
    TensorView target;
    TensorView weight;
    double smoothing;

    DIOPI_HD Weighted operator()(int64_t line, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        const Offsets<3> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], mine, lines.strides[0], team);
        double loss = 0;
        for (int64_t c = mine.first; c < mine.end; c += mine.step)
            loss += share(base, c) * (total - load_as<double>(input, base.at[0] + c * lines.strides[0]));
        return {team.reduce(loss, Plus{}), lines.count > 0 ? 1.0 : 0.0};
    }

    DIOPI_HD void backward(int64_t line, double gradient, const TensorView& grad_input, const Team& team) const {
        const auto mine = stripe_of(team, lines.count);
        const Offsets<3> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], mine, lines.strides[0], team);
        double spread = 0;
        for (int64_t c = mine.first; c < mine.end; c += mine.step) spread += share(base, c);
        spread = team.reduce(spread, Plus{});
        for (int64_t c = mine.first; c < mine.end; c += mine.step) {
            const double probability = math::exp(load_as<double>(input, base.at[0] + c * lines.strides[0]) - total);
            store_as(grad_input, base.at[1] + c * lines.strides[1], gradient * (spread * probability - share(base, c)));
        }
    }

    // The weighted, smoothed probability that the target gives to class c.
    DIOPI_HD double share(const Offsets<3>& base, int64_t c) const {
        const double probability = load_as<double>(target, base.at[2] + c * lines.strides[2]);
        const double smoothed = probability * (1.0 - smoothing) + smoothing / static_cast<double>(lines.count);
        return weight.defined() ? smoothed * load_as<double>(weight, c * weight.strides[0]) : smoothed;
    }
};

template <class Entropy>
struct EntropyLineTask {
    Entropy entropy;
    Weighted* losses;
    DIOPI_HD void operator()(int64_t line, const Team& team = {}) const {
        const Weighted loss = entropy(line, team);
        if (team.rank() == 0) losses[line] = loss;
    }
};

struct LineLoss {
    const Weighted* losses;
    DIOPI_HD Weighted operator()(int64_t line) const { return losses[line]; }
};

template <class Entropy>
struct EntropyGradientTask {
    Entropy entropy;
    GradientSource gradient;
    TensorView grad_input;
    DIOPI_HD void operator()(int64_t line, const Team& team = {}) const {
        entropy.backward(line, gradient.get(line), grad_input, team);
    }
};

struct Problem {
    TensorView input;
    TensorView other;  // grad_input, or the input again
    TensorView target;
    TensorView weight;
    double smoothing;

    bool labels() const { return !(target.same_sizes(input) && is_float_dtype(target.dtype)); }

    LabelEntropy label_entropy(int64_t ignore_index) const {
        const Lines<2> lines = lines_along({input, other}, class_dim(input), true);  // without classes, too
        return {lines, input, ClassTargets(target, weight, lines.outer.numel, lines.count, ignore_index), smoothing};
    }

    DistributionEntropy distribution_entropy() const {
        const Lines<3> lines = lines_along({input, other, target}, class_dim(input), true);
        require(!weight.defined() || weight.numel == lines.count, "the weights are not one per class");
        return {lines, input, target, weight, smoothing};
    }
};

Problem problem_of(ConstTensor input, ConstTensor grad_input, ConstTensor target, ConstTensor weight,
                   double smoothing) {
    const TensorView x = required_view(input, "input");
    if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
    const TensorView other = grad_input == nullptr ? x : view(grad_input);
    require_storable(other);
    require(smoothing <= 1.0, "label_smoothing must be at most 1, not %g", smoothing);
    return {x, other, required_view(target, "target"), view(weight), math::max(smoothing, 0.0)};
}

template <class Entropy>
void store_entropy(Context ctx, const Entropy& entropy, diopiReduction_t reduction, const TensorView& out) {
    const int64_t count = entropy.lines.outer.numel;
    Weighted* const losses = workspace_of<Weighted>(ctx, count);
    for_each_by_teams(ctx, count, team_work(entropy.lines, 0), EntropyLineTask<Entropy>{entropy, losses});
    store_loss(ctx, count, LineLoss{losses}, reduction, out);
}

template <class Entropy>
void propagate_entropy(Context ctx, const Entropy& entropy, diopiReduction_t reduction, const TensorView& gradient,
                       const TensorView& total, const TensorView& grad_input) {
    const int64_t count = entropy.lines.outer.numel;
    const GradientSource source(gradient, reduction, count, total);
    for_each_by_teams(ctx, count, team_work(entropy.lines, 0),
                      EntropyGradientTask<Entropy>{entropy, source, grad_input});
}

}  // namespace

diopiError_t diopiCrossEntropyLoss(Context ctx, Tensor out, ConstTensor input, ConstTensor target, ConstTensor weight,
                                   diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        const Problem problem = problem_of(input, nullptr, target, weight, label_smoothing);
        const TensorView y = required_view(out, "out");
        if (problem.labels()) {
            const LabelEntropy entropy = problem.label_entropy(ignore_index);
            require_valid(ctx, entropy.targets, entropy.lines.outer.numel);
            store_entropy(ctx, entropy, reduction, y);
        } else {
            store_entropy(ctx, problem.distribution_entropy(), reduction, y);
        }
    });
}

diopiError_t diopiCrossEntropyLossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                           ConstTensor target, ConstTensor weight, diopiReduction_t reduction,
                                           int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        require(grad_input != nullptr, "the tensor 'grad_input' is null");
        const Problem problem = problem_of(input, grad_input, target, weight, label_smoothing);
        const TensorView gradient = required_view(grad_output, "grad_output");
        if (problem.labels()) {
            const LabelEntropy entropy = problem.label_entropy(ignore_index);
            const TensorView total = total_weight_of(ctx, entropy.targets, entropy.lines.outer.numel, reduction);
            propagate_entropy(ctx, entropy, reduction, gradient, total, problem.other);
        } else {
            propagate_entropy(ctx, problem.distribution_entropy(), reduction, gradient, undefined_view(),
                              problem.other);
        }
    });
}

}  // namespace impl::portable
