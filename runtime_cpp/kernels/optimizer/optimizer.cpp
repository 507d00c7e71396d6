// Optimizer steps in place: SGD, Adam and AdamW for one parameter or a list, and the gradient scaler's two operators.
#include <diopi/diopirt.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "copy/copy.h"
#include "core/same_value.h"
#include "core/tensor.h"
#include "math/math.h"
#include "space/access.h"
#include "space/index.h"
#include "optimizer/lists.h"
#include "space/packed_rows.h"
#include "step.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct AdamSettings {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
    bool amsgrad;
    bool maximize;
    bool decoupled;  // AdamW: weight decay shrinks the parameter and stays out of the averages
    double log_beta1 = std::log(beta1), log_beta2 = std::log(beta2);  // 1 - beta^n is -expm1(n log beta)
};

// Numbers on the device that a step of lists may be given; null where it is not.
struct StepNumbers {
    const float* rate;  // in place of the settings'
    const float* grad_scale;  // that gradients are divided by, and left so
    const float* found_inf;  // not zero: the step is skipped

    static StepNumbers of(ConstTensor rate, ConstTensor grad_scale, ConstTensor found_inf) {
        return {number(rate, "rate"), number(grad_scale, "grad_scale"), number(found_inf, "found_inf")};
    }

    DIOPI_HD bool skips() const { return found_inf != nullptr && *found_inf != 0.0f; }
    DIOPI_HD double rate_or(double lr) const { return rate != nullptr ? static_cast<double>(*rate) : lr; }
    DIOPI_HD float scale() const { return grad_scale != nullptr ? *grad_scale : 1.0f; }

private:
    static const float* number(ConstTensor handle, const char* name) {
        const TensorView tensor = view(handle);
        if (!tensor.defined()) return nullptr;
        require(tensor.numel == 1 && tensor.dtype == diopi_dtype_float32, "'%s' is not one float32", name);
        return tensor.as<float>();
    }
};

// Adam: parameters, gradients, averages, averages of squares, their maxima.
template <bool amsgrad>
struct AdamLists {
    static constexpr int kTensors = amsgrad ? 5 : 4;

    AdamSettings settings;
    StepNumbers numbers;
    double count;  // of steps done, where it does not lie on the device
    diopiDtype_t counted;  // the dtype of the steps that do
    const void* steps[kMostEntries];

    struct Known {
        bool skipped;
        float scale;
        double size, root_scale, shrink;  // of a step, of the root of the averaged squares, of the parameter itself
        DIOPI_HD bool skips() const { return skipped; }
    };

    DIOPI_HD bool writes(int n) const { return n != 1 || numbers.grad_scale != nullptr; }

    DIOPI_HD Known entry(int k) const {
        const double lr = numbers.rate_or(settings.lr), done = step(k);
        return {numbers.skips(), numbers.scale(), lr / -math::expm1(done * settings.log_beta1),
                1.0 / math::sqrt(-math::expm1(done * settings.log_beta2)),
                settings.decoupled ? lr * settings.weight_decay : 0.0};
    }

    DIOPI_HD double step(int k) const {
        if (steps[k] == nullptr) return count;
        switch (counted) {
            case diopi_dtype_int64: return static_cast<double>(*static_cast<const int64_t*>(steps[k]));
            case diopi_dtype_float64: return *static_cast<const double*>(steps[k]);
            default: return static_cast<double>(*static_cast<const float*>(steps[k]));
        }
    }

    template <class C>
    DIOPI_HD_INLINED void operator()(C (&values)[kTensors], const Known& known) const {
        C& param = values[0];
        if (numbers.grad_scale != nullptr) values[1] = values[1] / C(known.scale);
        C gradient = settings.maximize ? -values[1] : values[1];
        gradient += C(settings.decoupled ? 0.0 : settings.weight_decay) * param;
        param -= C(known.shrink) * param;
        C &average = values[2], &squares = values[3];
        average = average + C(1.0 - settings.beta1) * (gradient - average);
        squares = C(settings.beta2) * squares + C(1.0 - settings.beta2) * gradient * gradient;
        C largest = squares;
        if constexpr (amsgrad) largest = values[4] = math::max(squares, values[4]);
        param = param - C(known.size) * average / (math::sqrt(largest) * C(known.root_scale) + C(settings.eps));
    }
};

// SGD: parameters, gradients, momentum buffers.
template <bool has_momentum>
struct SgdLists {
    static constexpr int kTensors = has_momentum ? 3 : 2;

    StepNumbers numbers;
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize, is_first_step;

    struct Known {
        bool skipped;
        float scale;
        double rate;
        DIOPI_HD bool skips() const { return skipped; }
    };

    DIOPI_HD bool writes(int n) const { return n != 1 || numbers.grad_scale != nullptr; }
    DIOPI_HD Known entry(int) const { return {numbers.skips(), numbers.scale(), numbers.rate_or(lr)}; }

    template <class C>
    DIOPI_HD_INLINED void operator()(C (&values)[kTensors], const Known& known) const {
        if (numbers.grad_scale != nullptr) values[1] = values[1] / C(known.scale);
        C direction = (maximize ? -values[1] : values[1]) + C(weight_decay) * values[0];
        if constexpr (has_momentum) {
            C& buffer = values[2];
            buffer = is_first_step ? direction : C(momentum) * buffer + (C(1) - C(dampening)) * direction;
            direction = nesterov ? direction + C(momentum) * buffer : buffer;
        }
        values[0] = values[0] - C(known.rate) * direction;
    }
};

// Gives the tensors of entry k of the first N lists.
template <int N, int M>
auto entries_of(Tensor* const (&lists)[M], const char* const (&names)[M]) {
    return [&](int64_t k, TensorView(&views)[N]) {
        for (int n = 0; n < N; ++n) {
            require(lists[n] != nullptr, "the list '%s' is null", names[n]);
            views[n] = required_view(lists[n][k], names[n]);
        }
    };
}

template <bool amsgrad>
void adam_lists(Context ctx, const AdamSettings& settings, const StepNumbers& numbers, int64_t count,
                Tensor* const (&lists)[5], ConstTensor* state_steps) {
    static constexpr const char* names[5] = {"params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"};
    const auto step = [&](int64_t k) { return required_view(state_steps[k], "state_steps"); };
    const diopiDtype_t counted = count > 0 ? step(0).dtype : diopi_dtype_float32;
    require(counted == diopi_dtype_float32 || counted == diopi_dtype_float64 || counted == diopi_dtype_int64,
            "'state_steps' are not float32, float64 or int64");
    const AdamLists<amsgrad> op{settings, numbers, 0.0, counted, {}};
    const auto start = [&](AdamLists<amsgrad>& own, int entry, int64_t k) {
        const TensorView number = step(k);
        require(number.numel == 1 && number.dtype == counted, "'state_steps' are not one number of one dtype each");
        own.steps[entry] = number.data;
    };
    for_each_entry(ctx, count, op, entries_of<AdamLists<amsgrad>::kTensors>(lists, names), start);
}

void adam_lists(Context ctx, const AdamSettings& settings, const StepNumbers& numbers, int64_t count,
                Tensor* const (&lists)[5], ConstTensor* state_steps) {
    settings.amsgrad ? adam_lists<true>(ctx, settings, numbers, count, lists, state_steps)
                     : adam_lists<false>(ctx, settings, numbers, count, lists, state_steps);
}

// A step for one parameter.
template <class Op, int M>
void do_entry(Context ctx, const Op& op, const TensorView (&tensors)[M]) {
    constexpr int N = Op::kTensors;
    const auto entry = [&](int64_t, TensorView(&views)[N]) { std::copy_n(tensors, N, views); };
    for_each_entry(ctx, 1, op, entry, [](const Op&, int, int64_t) {});
}

diopiError_t single_adam(Context ctx, Tensor param, ConstTensor grad, Tensor exp_avg, Tensor exp_avg_sq,
                         Tensor max_exp_avg_sq, float lr, float beta1, float beta2, float eps, float weight_decay,
                         int64_t step, bool amsgrad, bool decoupled) {
    return guarded([&] {
        const AdamSettings settings{decimal(lr),           decimal(beta1), decimal(beta2), decimal(eps),
                                    decimal(weight_decay), amsgrad,        false,          decoupled};
        const TensorView parameter = required_view(param, "param");
        const TensorView tensors[5] = {parameter, required_view(grad, "grad"), required_view(exp_avg, "exp_avg"),
                                       required_view(exp_avg_sq, "exp_avg_sq"),
                                       optional_state(max_exp_avg_sq, parameter)};
        require(!amsgrad || tensors[4].defined(), "amsgrad needs max_exp_avg_sq");
        const auto run = [&](auto with_largest) {
            do_entry(ctx, AdamLists<decltype(with_largest)::value>{settings, {}, double(step), {}, {}}, tensors);
        };
        amsgrad ? run(std::true_type{}) : run(std::false_type{});
    });
}

struct UnscaleTask {
    Space<1> space;
    TensorView gradient;
    TensorView found_inf;
    TensorView inv_scale;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t at = space.offset(i);
        const double value = load_as<double>(gradient, at);
        if (!math::isfinite(value)) store_same(found_inf, 0, 1.0);
        store_as(gradient, at, value * load_as<double>(inv_scale, 0));
    }
};

struct UpdateScaleTask {
    TensorView scale;
    TensorView growth_tracker;
    TensorView found_inf;
    double growth_factor;
    double backoff_factor;
    int64_t growth_interval;

    DIOPI_HD void operator()(int64_t) const {
        const double current = load_as<double>(scale, 0);
        if (load_as<double>(found_inf, 0) > 0.0) {
            store_as(scale, 0, current * backoff_factor);
            store_as(growth_tracker, 0, int64_t{0});
            return;
        }
        const int64_t successes = load_as<int64_t>(growth_tracker, 0) + 1;
        const double grown = current * growth_factor;
        const bool grows = successes == growth_interval;
        if (grows && math::isfinite(static_cast<float>(grown))) store_as(scale, 0, grown);
        store_as(growth_tracker, 0, grows ? int64_t{0} : successes);
    }
};

}  // namespace

diopiError_t diopiSgd(Context ctx, Tensor param, Tensor grad, Tensor buf, double lr, double momentum, double dampening,
                      double weight_decay, bool nesterov) {
    return guarded([&] {
        const TensorView parameter = required_view(param, "param");
        const TensorView tensors[3] = {parameter, required_view(grad, "grad"), optional_state(buf, parameter)};
        const bool kept = momentum != 0.0 && tensors[2].defined();
        const double rate = !kept && nesterov ? lr * (1.0 + momentum) : lr;  // without a buffer it is the first step
        const auto run = [&](auto has_momentum) {
            using Op = SgdLists<decltype(has_momentum)::value>;
            do_entry(ctx, Op{{}, rate, momentum, dampening, weight_decay, nesterov, false, false}, tensors);
        };
        kept ? run(std::true_type{}) : run(std::false_type{});
    });
}

diopiError_t diopiAdam(Context ctx, Tensor param, ConstTensor grad, Tensor exp_avg, Tensor exp_avg_sq,
                       Tensor max_exp_avg_sq, float lr, float beta1, float beta2, float eps, float weight_decay,
                       int64_t step, bool amsgrad) {
    return single_adam(ctx, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step,
                       amsgrad, false);
}

diopiError_t diopiAdamW(Context ctx, Tensor param, ConstTensor grad, Tensor exp_avg, Tensor exp_avg_sq,
                        Tensor max_exp_avg_sq, float lr, float beta1, float beta2, float eps, float weight_decay,
                        int64_t step, bool amsgrad) {
    return single_adam(ctx, param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, beta1, beta2, eps, weight_decay, step,
                       amsgrad, true);
}

diopiError_t diopiFusedAdamW(Context ctx, Tensor* params, ConstTensor* grads, Tensor* exp_avgs, Tensor* exp_avg_sqs,
                             Tensor* max_exp_avg_sqs, ConstTensor* state_steps, int64_t nums, double lr, double beta1,
                             double beta2, double eps, double weight_decay, bool amsgrad, bool maximize) {
    return guarded([&] {
        const AdamSettings settings{lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, true};
        // Nothing is written to gradients where there is no scale.
        Tensor* const lists[5] = {params, const_cast<Tensor*>(grads), exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
        adam_lists(ctx, settings, StepNumbers{}, nums, lists, state_steps);
    });
}

diopiError_t diopiFusedAdam(Context ctx, Tensor* params, Tensor* grads, Tensor* exp_avgs, Tensor* exp_avg_sqs,
                            Tensor* max_exp_avg_sqs, ConstTensor* state_steps, int64_t nums, ConstTensor rate,
                            ConstTensor grad_scale, ConstTensor found_inf, double lr, double beta1, double beta2,
                            double eps, double weight_decay, bool amsgrad, bool maximize, bool decoupled) {
    return guarded([&] {
        const AdamSettings settings{lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled};
        const StepNumbers numbers = StepNumbers::of(rate, grad_scale, found_inf);
        Tensor* const lists[5] = {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
        adam_lists(ctx, settings, numbers, nums, lists, state_steps);
    });
}

diopiError_t diopiFusedSgd(Context ctx, Tensor* params, Tensor* grads, Tensor* momentum_buffers, int64_t nums,
                           ConstTensor rate, ConstTensor grad_scale, ConstTensor found_inf, double lr, double momentum,
                           double dampening, double weight_decay, bool nesterov, bool maximize, bool is_first_step) {
    return guarded([&] {
        const StepNumbers numbers = StepNumbers::of(rate, grad_scale, found_inf);
        Tensor* const lists[3] = {params, grads, momentum_buffers};
        static constexpr const char* names[3] = {"params", "grads", "momentum_buffers"};
        const auto run = [&](auto has_momentum) {
            using Op = SgdLists<decltype(has_momentum)::value>;
            const Op op{numbers, lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step};
            for_each_entry(ctx, nums, op, entries_of<Op::kTensors>(lists, names), [](const Op&, int, int64_t) {});
        };
        momentum != 0 ? run(std::true_type{}) : run(std::false_type{});
    });
}

diopiError_t diopiAmpForeachNonFiniteCheckAndUnscaleInp(Context ctx, Tensor* scaled_grads, int64_t num_scaled_grads,
                                                        Tensor found_inf, ConstTensor inv_scale) {
    return guarded([&] {
        const TensorView flag = required_view(found_inf, "found_inf"), factor = required_view(inv_scale, "inv_scale");
        require(flag.numel == 1 && factor.numel == 1, "found_inf and inv_scale have one element each");
        for (int64_t k = 0; k < num_scaled_grads; ++k) {
            const TensorView gradient = required_view(scaled_grads[k], "scaled_grads");
            if (!is_float_dtype(gradient.dtype)) fail_dtype(gradient.dtype);
            for_each(ctx, gradient.numel, UnscaleTask{space_of(gradient), gradient, flag, factor});
        }
    });
}

diopiError_t diopiAmpUpdateScaleInp(Context ctx, Tensor current_scale, Tensor growth_tracker, ConstTensor found_inf,
                                    double scale_growth_factor, double scale_backoff_factor, int32_t growth_interval) {
    return guarded([&] {
        for_each(ctx, 1,
                 UpdateScaleTask{required_view(current_scale, "current_scale"),
                                 required_view(growth_tracker, "growth_tracker"), required_view(found_inf, "found_inf"),
                                 scale_growth_factor, scale_backoff_factor, growth_interval});
    });
}

}  // namespace impl::portable
