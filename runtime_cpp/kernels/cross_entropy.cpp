// Cross entropy between logits and a class or a distribution per line, with label smoothing and its gradients.
#include <diopi/diopirt.h>

#include "core/class_targets.h"
#include "core/lines.h"
#include "core/partial_sums.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// log(sum of exp(x)) along a line, from the largest element on.
DIOPI_HD double log_sum_exp(const TensorView& input, int64_t base, int64_t count, int64_t stride) {
    double largest = -math::infinity<double>;
    for (int64_t c = 0; c < count; ++c) largest = math::max(largest, load_as<double>(input, base + c * stride));
    double sum = 0;
    for (int64_t c = 0; c < count; ++c) sum += math::exp(load_as<double>(input, base + c * stride) - largest);
    return largest + math::log(sum);
}

// A class per line. Smoothing gives each class the share `smoothing / classes`.
struct LabelEntropy {
    Lines<2> lines;  // input, grad_input
    TensorView input;
    ClassTargets targets;
    double smoothing;

    DIOPI_HD Weighted operator()(int64_t line) const {
        const int64_t label = targets.get(line);
        if (label == ClassTargets::kIgnored) return {0, 0};
        if (label == ClassTargets::kInvalid) return {math::quiet_nan<double>, 1};
        const int64_t base = lines.outer.offsets(line).at[0];
        const double total = log_sum_exp(input, base, lines.count, lines.strides[0]);
        const double weight = targets.weight_of(label);
        double loss = (1.0 - smoothing) * weight * (total - load_as<double>(input, base + label * lines.strides[0]));
        for (int64_t c = 0; smoothing > 0.0 && c < lines.count; ++c) {
            loss += share() * targets.weight_of(c) * (total - load_as<double>(input, base + c * lines.strides[0]));
        }
        return {loss, weight};
    }

    DIOPI_HD void backward(int64_t line, double gradient, const TensorView& grad_input) const {
        const int64_t label = targets.get(line);
        const Offsets<2> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], lines.count, lines.strides[0]);
        const double weight = label < 0 ? 0.0 : (1.0 - smoothing) * targets.weight_of(label);
        const double spread = smoothing > 0.0 ? share() * targets.total_weight() : 0.0;
        for (int64_t c = 0; c < lines.count; ++c) {
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

    DIOPI_HD Weighted operator()(int64_t line) const {
        const Offsets<3> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], lines.count, lines.strides[0]);
        double loss = 0;
        for (int64_t c = 0; c < lines.count; ++c)
            loss += share(base, c) * (total - load_as<double>(input, base.at[0] + c * lines.strides[0]));
        return {loss, 1};
    }

    DIOPI_HD void backward(int64_t line, double gradient, const TensorView& grad_input) const {
        const Offsets<3> base = lines.outer.offsets(line);
        const double total = log_sum_exp(input, base.at[0], lines.count, lines.strides[0]);
        double spread = 0;
        for (int64_t c = 0; c < lines.count; ++c) spread += share(base, c);
        for (int64_t c = 0; c < lines.count; ++c) {
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
struct EntropyGradientTask {
    Entropy entropy;
    GradientSource gradient;
    TensorView grad_input;
    DIOPI_HD void operator()(int64_t line) const { entropy.backward(line, gradient.get(line), grad_input); }
};

struct Problem {
    TensorView input;
    TensorView other;  // grad_input, or the input again
    TensorView target;
    TensorView weight;
    double smoothing;

    bool labels() const { return !(target.same_sizes(input) && is_float_dtype(target.dtype)); }

    LabelEntropy label_entropy(int64_t ignore_index) const {
        const TensorView operands[2] = {input, other};
        const Lines<2> lines = lines_along(operands, class_dim(input));
        return {lines, input, ClassTargets(target, weight, lines.outer.numel, lines.count, ignore_index), smoothing};
    }

    DistributionEntropy distribution_entropy() const {
        const TensorView operands[3] = {input, other, target};
        const Lines<3> lines = lines_along(operands, class_dim(input));
        require(!weight.defined() || weight.numel == lines.count, "the weights are not one per class");
        return {lines, input, target, weight, smoothing};
    }
};

Problem problem_of(diopiConstTensorHandle_t input, diopiConstTensorHandle_t grad_input, diopiConstTensorHandle_t target,
                   diopiConstTensorHandle_t weight, double smoothing) {
    const TensorView x = required_view(input, "input");
    if (!is_float_dtype(x.dtype)) fail_dtype(x.dtype);
    const TensorView other = grad_input == nullptr ? x : view(grad_input);
    require_storable(other);
    require(smoothing >= 0.0 && smoothing <= 1.0, "label_smoothing must be between 0 and 1, not %g", smoothing);
    return {x, other, required_view(target, "target"), view(weight), smoothing};
}

}  // namespace

diopiError_t diopiCrossEntropyLoss(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                   diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                   diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        const Problem problem = problem_of(input, nullptr, target, weight, label_smoothing);
        const TensorView y = required_view(out, "out");
        if (problem.labels()) {
            const LabelEntropy entropy = problem.label_entropy(ignore_index);
            require_valid(ctx, entropy.targets, entropy.lines.outer.numel);
            store_loss(ctx, entropy.lines.outer.numel, entropy, reduction, y);
        } else {
            const DistributionEntropy entropy = problem.distribution_entropy();
            store_loss(ctx, entropy.lines.outer.numel, entropy, reduction, y);
        }
    });
}

diopiError_t diopiCrossEntropyLossBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                           diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                           diopiConstTensorHandle_t target, diopiConstTensorHandle_t weight,
                                           diopiReduction_t reduction, int64_t ignore_index, double label_smoothing) {
    return guarded([&] {
        require(grad_input != nullptr, "the tensor 'grad_input' is null");
        const Problem problem = problem_of(input, grad_input, target, weight, label_smoothing);
        const TensorView gradient = required_view(grad_output, "grad_output");
        if (problem.labels()) {
            const LabelEntropy entropy = problem.label_entropy(ignore_index);
            const int64_t count = entropy.lines.outer.numel;
            double* total = workspace_of<double>(ctx, 1);
            sum_terms(ctx, count, LabelWeight{entropy.targets}, StoreWeight{total});
            for_each(ctx, count,
                     EntropyGradientTask<LabelEntropy>{entropy, GradientSource(gradient, reduction, count, total),
                                                       problem.other});
        } else {
            const DistributionEntropy entropy = problem.distribution_entropy();
            const int64_t count = entropy.lines.outer.numel;
            for_each(ctx, count,
                     EntropyGradientTask<DistributionEntropy>{
                         entropy, GradientSource(gradient, reduction, count, nullptr), problem.other});
        }
    });
}

}  // namespace impl::portable
