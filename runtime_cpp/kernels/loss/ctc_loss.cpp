// Connectionist temporal classification: the loss by forward variables, its gradient by those and backward ones.
#include <diopi/diopirt.h>

#include <initializer_list>

#include "core/view.h"
#include "math/math.h"
#include "partial_sums.h"
#include "space/element.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Not inlined: the code of all dtypes would stand in each place.
template <class T>
DIOPI_HD_OUTLINED T number_of_any(const TensorView& tensor, int64_t offset) {
    return load_as<T>(tensor, offset);
}
DIOPI_HD_OUTLINED void set_any(const TensorView& tensor, int64_t offset, double value) {
    store_as(tensor, offset, value);
}

// T: double or int64_t.
template <class T, class... Position>
DIOPI_HD inline T number(const TensorView& tensor, Position... position) {
    using Short = std::conditional_t<is_float<T>, float, int32_t>;
    const int64_t offset = offset_of(tensor, position...);
    if (tensor.dtype == dtype_of<T>) return tensor.as<T>()[offset];
    return tensor.dtype == dtype_of<Short> ? T{tensor.as<Short>()[offset]} : number_of_any<T>(tensor, offset);
}

template <class... Position>
DIOPI_HD inline void set(const TensorView& tensor, double value, Position... position) {
    set_any(tensor, offset_of(tensor, position...), value);
}

// log(exp(a) + exp(b)); minus infinity is the logarithm of zero.
DIOPI_HD inline double log_sum(double a, double b) {
    const double greater = math::max(a, b);
    return math::isinf(greater) ? greater : greater + math::log1p(math::exp(-math::abs(a - b)));
}

// One sequence of the batch with its target, whose states are its labels with blanks around them.
struct Sequence {
    int64_t index;
    int64_t steps;
    int64_t labels;
    int64_t first;  // of its labels in the targets

    DIOPI_HD int64_t states() const { return 2 * labels + 1; }
};

struct Batch {
    TensorView log_probs;  // [step, sequence, class]
    TensorView targets;    // rows, or all in one
    TensorView input_lengths, target_lengths;
    int64_t blank;
    int64_t room;  // for the states of a sequence

    // Lengths beyond the tensors' own are cut: nothing is read or written outside.
    DIOPI_HD Sequence sequence(int64_t n) const {
        Sequence result{n, number<int64_t>(input_lengths, n), number<int64_t>(target_lengths, n), 0};
        if (targets.ndim == 1) {
            for (int64_t k = 0; k < n; ++k) result.first += number<int64_t>(target_lengths, k);
        }
        const int64_t there = targets.sizes[targets.ndim - 1] - result.first;
        result.steps = result.steps < log_probs.sizes[0] ? result.steps : log_probs.sizes[0];
        result.labels = result.labels < there ? result.labels : there;
        if (result.states() > room) result.labels = (room - 1) / 2;
        return result;
    }

    DIOPI_HD int64_t label(const Sequence& s, int64_t state) const {
        if (state % 2 == 0) return blank;
        return targets.ndim == 1 ? number<int64_t>(targets, s.first + state / 2)
                                 : number<int64_t>(targets, s.index, state / 2);
    }

    // A state may be entered from the second before it where that is another label.
    DIOPI_HD bool skips(const Sequence& s, int64_t state) const {
        return state % 2 == 1 && state >= 3 && label(s, state) != label(s, state - 2);
    }

    DIOPI_HD double log_prob(const Sequence& s, int64_t step, int64_t c) const {
        if (c < 0 || c >= log_probs.sizes[2]) return math::quiet_nan<double>;
        return number<double>(log_probs, step, s.index, c);
    }
};

constexpr double kImpossible = -math::infinity<double>;

struct ForwardTask {
    Batch batch;
    TensorView log_alpha;  // [sequence, step, state]
    TensorView negative_logs;

    DIOPI_HD double before(int64_t n, int64_t step, int64_t state) const {
        return state < 0 ? kImpossible : number<double>(log_alpha, n, step - 1, state);
    }

    DIOPI_HD void operator()(int64_t n) const {
        const Sequence s = batch.sequence(n);
        for (int64_t step = 0; step < log_alpha.sizes[1]; ++step) {
            for (int64_t state = 0; state < log_alpha.sizes[2]; ++state)
                set(log_alpha, step < s.steps ? alpha(s, step, state) : kImpossible, n, step, state);
        }
        double total = s.labels == 0 ? 0.0 : kImpossible;  // of no steps
        if (s.steps > 0) {
            total = before(n, s.steps, s.states() - 1);
            if (s.labels > 0) total = log_sum(total, before(n, s.steps, s.states() - 2));
        }
        set(negative_logs, -total, n);
    }

    DIOPI_HD double alpha(const Sequence& s, int64_t step, int64_t state) const {
        if (state >= s.states()) return kImpossible;
        double reached = state < 2 ? 0.0 : kImpossible;
        if (step > 0) {
            reached = log_sum(before(s.index, step, state), before(s.index, step, state - 1));
            if (batch.skips(s, state)) reached = log_sum(reached, before(s.index, step, state - 2));
        }
        return reached == kImpossible ? kImpossible : reached + batch.log_prob(s, step, batch.label(s, state));
    }
};

struct BackwardTask {
    Batch batch;
    TensorView grad_input;
    TensorView grad_output;
    TensorView log_alpha;
    TensorView negative_logs;
    diopiReduction_t reduction;
    bool zero_infinity;
    double* memory;  // for each sequence: its backward variables, then a sum for each class

    DIOPI_HD double gradient(const Sequence& s) const {
        if (reduction == ReductionNone) return number<double>(grad_output, s.index);
        const double whole = number<double>(grad_output, 0);
        if (reduction == ReductionSum) return whole;
        const int64_t length = number<int64_t>(batch.target_lengths, s.index);
        return whole / static_cast<double>((length > 1 ? length : 1) * batch.log_probs.sizes[1]);
    }

    DIOPI_HD void operator()(int64_t n) const {
        const Sequence s = batch.sequence(n);
        const int64_t classes = batch.log_probs.sizes[2];
        double* const beta = memory + n * (batch.room + classes);
        double* const sums = beta + batch.room;
        const double loss = number<double>(negative_logs, n);
        const double factor = gradient(s);
        const bool nothing = zero_infinity && math::isposinf(loss);
        for (int64_t step = grad_input.sizes[0] - 1; step >= 0; --step) {
            const bool there = step < s.steps && !nothing;
            if (there) backward_step(s, step, beta, sums);
            for (int64_t c = 0; c < classes; ++c) {
                const double log_prob = there ? batch.log_prob(s, step, c) : 0.0;
                const double slope = there ? math::exp(log_prob) - math::exp(sums[c] + loss - log_prob) : 0.0;
                set(grad_input, there ? slope * factor : 0.0, step, n, c);
            }
        }
    }

    // `beta` goes from the variables of the next step to those of this one; in place, since a state only needs later
    // states, which are overwritten after it.
    DIOPI_HD void backward_step(const Sequence& s, int64_t step, double* beta, double* sums) const {
        const int64_t states = s.states();
        for (int64_t c = 0; c < batch.log_probs.sizes[2]; ++c) sums[c] = kImpossible;
        for (int64_t state = 0; state < states; ++state) {
            const int64_t label = batch.label(s, state);
            double reached = state >= states - 2 ? 0.0 : kImpossible;
            if (step + 1 < s.steps) {
                reached = beta[state];
                if (state + 1 < states) reached = log_sum(reached, beta[state + 1]);
                if (state + 2 < states && batch.skips(s, state + 2)) reached = log_sum(reached, beta[state + 2]);
            }
            beta[state] = reached == kImpossible ? kImpossible : reached + batch.log_prob(s, step, label);
            if (label < 0 || label >= batch.log_probs.sizes[2]) continue;
            const double alpha = number<double>(log_alpha, s.index, step, state);
            sums[label] = log_sum(sums[label], alpha + beta[state]);
        }
    }
};

struct Loss {
    Batch batch;
    TensorView negative_logs;
    bool zero_infinity;
    bool by_length;

    DIOPI_HD double value(int64_t n) const {
        const double loss = number<double>(negative_logs, n);
        return zero_infinity && math::isposinf(loss) ? 0.0 : loss;
    }
    DIOPI_HD Weighted operator()(int64_t n) const {
        const int64_t length = number<int64_t>(batch.target_lengths, n);
        return {value(n) / (by_length && length > 1 ? static_cast<double>(length) : 1.0), 1.0};
    }
};

struct EachLossTask {
    Loss loss;
    TensorView out;
    DIOPI_HD void operator()(int64_t n) const { set(out, loss.value(n), n); }
};

Batch batch_of(ConstTensor log_probs, ConstTensor targets, ConstTensor input_lengths, ConstTensor target_lengths,
               int64_t blank, const TensorView& log_alpha, const TensorView& negative_logs) {
    const Batch batch{required_view(log_probs, "log_probs"),
                      required_view(targets, "targets"),
                      required_view(input_lengths, "input_lengths"),
                      required_view(target_lengths, "target_lengths"),
                      blank,
                      log_alpha.ndim == 3 ? log_alpha.sizes[2] : 0};
    require(batch.log_probs.ndim == 3 && is_float_dtype(batch.log_probs.dtype),
            "'log_probs' has the dimensions of steps, sequences and classes");
    const int64_t count = batch.log_probs.sizes[1];
    for (const TensorView* index : {&batch.targets, &batch.input_lengths, &batch.target_lengths}) {
        if (!is_in<Integer>(index->dtype)) fail_dtype(index->dtype);
    }
    require(batch.targets.ndim == 1 || (batch.targets.ndim == 2 && batch.targets.sizes[0] == count),
            "the targets are a row for each sequence, or all in one");
    require(batch.input_lengths.ndim == 1 && batch.input_lengths.sizes[0] == count && batch.target_lengths.ndim == 1 &&
                batch.target_lengths.sizes[0] == count && negative_logs.ndim == 1 && negative_logs.sizes[0] == count,
            "there are as many lengths and likelihoods as sequences");
    require(log_alpha.ndim == 3 && log_alpha.sizes[0] == count && log_alpha.sizes[1] == batch.log_probs.sizes[0] &&
                log_alpha.sizes[2] > 0,
            "'log_alpha' has the dimensions of sequences, steps and states");
    require(blank >= 0 && blank < batch.log_probs.sizes[2], "the blank %lld is not one of %lld classes", blank,
            batch.log_probs.sizes[2]);
    require_storable(log_alpha);
    require_storable(negative_logs);
    return batch;
}

}  // namespace

diopiError_t diopiCTCLoss(Context ctx, Tensor out, Tensor neg_log_likelihood, Tensor log_alpha, ConstTensor log_probs,
                          ConstTensor targets, ConstTensor input_lengths, ConstTensor target_lengths, int64_t blank,
                          diopiReduction_t reduction, bool zero_infinity) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), alphas = required_view(log_alpha, "log_alpha");
        const TensorView logs = required_view(neg_log_likelihood, "neg_log_likelihood");
        const Batch batch = batch_of(log_probs, targets, input_lengths, target_lengths, blank, alphas, logs);
        const int64_t count = batch.log_probs.sizes[1];
        require(result.numel == (reduction == ReductionNone ? count : 1), "the loss has another shape than its output");
        require_storable(result);
        for_each(ctx, count, ForwardTask{batch, alphas, logs});
        const Loss loss{batch, logs, zero_infinity, reduction == ReductionMean};
        if (reduction == ReductionNone) {
            for_each(ctx, count, EachLossTask{loss, at_least_1d(result)});
        } else {
            sum_terms(ctx, count, loss, StoreReduced{result, undefined_view(), reduction == ReductionMean});
        }
    });
}

diopiError_t diopiCTCLossBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor log_probs,
                                  ConstTensor targets, ConstTensor input_lengths, ConstTensor target_lengths,
                                  ConstTensor neg_log_likelihood, ConstTensor log_alpha, int64_t blank,
                                  diopiReduction_t reduction, bool zero_infinity) {
    return guarded([&] {
        const TensorView result = required_view(grad_input, "grad_input");
        const TensorView gradient = at_least_1d(required_view(grad_output, "grad_output"));
        const TensorView alphas = required_view(log_alpha, "log_alpha");
        const TensorView logs = required_view(neg_log_likelihood, "neg_log_likelihood");
        const Batch batch = batch_of(log_probs, targets, input_lengths, target_lengths, blank, alphas, logs);
        const int64_t count = batch.log_probs.sizes[1];
        require_same_sizes(result, batch.log_probs, "grad_input", "log_probs");
        require(gradient.ndim == 1 && gradient.numel == (reduction == ReductionNone ? count : 1),
                "grad_output has another shape than the loss");
        require_storable(result);
        require_storable(gradient);
        auto* const memory = workspace_of<double>(ctx, count * (batch.room + batch.log_probs.sizes[2]));
        for_each(ctx, count, BackwardTask{batch, result, gradient, alphas, logs, reduction, zero_infinity, memory});
    });
}

}  // namespace impl::portable
