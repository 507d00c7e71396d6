// Optimizer steps in place: SGD, Adam and AdamW for one parameter or a list, and the gradient scaler's two operators.
#include <diopi/diopirt.h>

#include <algorithm>
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

// How many elements one call of a step's task takes: many where they become vector code, one where threads are many.
constexpr int64_t kSgdChunk = diopi::launch::kSynchronous ? 4096 : 1;
constexpr int64_t kAdamChunk = diopi::launch::kSynchronous ? 4096 : 4;  // so that the corrections are worked out rarely

int64_t chunks(int64_t count, int64_t chunk) { return (count + chunk - 1) / chunk; }

// Half parameters compute in float, as torch's fused steps do.
template <class Access, bool has_momentum>
struct SgdTask {
    using C = typename Access::Compute;

    StepTensors<3> step;  // parameter, gradient, momentum buffer
    C lr, momentum, dampening, weight_decay;
    bool nesterov;

    DIOPI_HD void operator()(int64_t chunk) const {
        const int64_t first = chunk * kSgdChunk, count = step.space.numel - first;
        step.each(first, first + (count < kSgdChunk ? count : kSgdChunk), [&](const Offsets<3>& at) { element(at); });
    }

    DIOPI_HD void element(const Offsets<3>& at) const {
        const C param = Access::template load<C>(step.tensors[0], at.at[0]);
        C direction = Access::template load<C>(step.tensors[1], at.at[1]) + weight_decay * param;
        if constexpr (has_momentum) {
            const C buffer =
                momentum * Access::template load<C>(step.tensors[2], at.at[2]) + (C(1) - dampening) * direction;
            Access::store(step.tensors[2], at.at[2], buffer);
            direction = nesterov ? direction + momentum * buffer : buffer;
        }
        Access::store(step.tensors[0], at.at[0], param - lr * direction);
    }
};

struct AdamSettings {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
    bool amsgrad;
    bool maximize;
    bool decoupled;  // AdamW: weight decay shrinks the parameter and stays out of the averages
};

// What depends on the count of steps, worked out in double, once per chunk of elements.
struct Corrections {
    double step_size;
    double root;  // of the second correction

    DIOPI_HD static Corrections of(const AdamSettings& settings, double step) {
        return {settings.lr / (1.0 - math::pow(settings.beta1, step)),
                math::sqrt(1.0 - math::pow(settings.beta2, step))};
    }
};

// Moves the averages towards `gradient`, and a parameter by them: one element of each tensor, the maximum if there is one.
template <class C, int N>
DIOPI_HD_INLINED void follow(C (&values)[N], const AdamSettings& settings, C gradient, C size, C correction) {
    values[2] = values[2] + C(1.0 - settings.beta1) * (gradient - values[2]);
    values[3] = C(settings.beta2) * values[3] + C(1.0 - settings.beta2) * gradient * gradient;
    C squares = values[3];
    if constexpr (N == 5) squares = values[4] = math::max(squares, values[4]);
    values[0] = values[0] - size * values[2] / (math::sqrt(squares) / correction + C(settings.eps));
}

template <class Access, bool decoupled, bool amsgrad>
struct AdamTask {
    using C = typename Access::Compute;
    static constexpr int kTensors = amsgrad ? 5 : 4;

    StepTensors<5> step;  // parameter, gradient, average, average of squares, its maximum
    AdamSettings settings;
    double count;  // of steps
    int64_t threads;  // each takes every `threads`-th pack; 0: chunks of elements

    DIOPI_HD void operator()(int64_t i) const {
        const Corrections corrections = Corrections::of(settings, count);
        const C size = C(corrections.step_size), correction = C(corrections.root);
        if (threads > 0) return packs(i, size, correction);
        const int64_t first = i * kAdamChunk, left = step.space.numel - first;
        step.each(first, first + (left < kAdamChunk ? left : kAdamChunk), [&](const Offsets<5>& at) {
            C values[kTensors];
            DIOPI_UNROLL
            for (int n = 0; n < kTensors; ++n) values[n] = Access::template load<C>(step.tensors[n], at.at[n]);
            advance(values, size, correction);
            DIOPI_UNROLL
            for (int n = 0; n < kTensors; ++n) {
                if (n != 1) Access::store(step.tensors[n], at.at[n], values[n]);
            }
        });
    }

    DIOPI_HD_INLINED void packs(int64_t i, C size, C correction) const {
        if constexpr (kHasPacks<Access>) {
            using T = typename Access::Element;
            constexpr int width = kRowPack<T>;
            for (int64_t at = i * width; at < step.space.numel; at += threads * width) {
                Pack<T, width> all[kTensors];
                DIOPI_UNROLL
                for (int n = 0; n < kTensors; ++n) all[n] = load_pack<T, width>(step.tensors[n].template as<T>() + at);
                DIOPI_UNROLL
                for (int k = 0; k < width; ++k) {
                    C values[kTensors];
                    DIOPI_UNROLL
                    for (int n = 0; n < kTensors; ++n) values[n] = cast<C>(all[n].at[k]);
                    advance(values, size, correction);
                    DIOPI_UNROLL
                    for (int n = 0; n < kTensors; ++n) all[n].at[k] = cast<T>(values[n]);
                }
                DIOPI_UNROLL
                for (int n = 0; n < kTensors; ++n) {
                    if (n != 1) store_pack<T, width>(step.tensors[n].template as<T>() + at, all[n]);
                }
            }
        }
    }

    // One element of each tensor; the gradient is read only.
    DIOPI_HD_INLINED void advance(C (&values)[kTensors], C size, C correction) const {
        C& param = values[0];
        C gradient = settings.maximize ? -values[1] : values[1];
        if constexpr (decoupled) {
            param -= C(settings.lr * settings.weight_decay) * param;
        } else {
            gradient += C(settings.weight_decay) * param;
        }
        follow(values, settings, gradient, size, correction);
    }
};

// How many threads share the packs of a step, several to each where they are many; 0 where they are no packs.
template <class Access, int N>
int64_t pack_threads(const StepTensors<N>& step) {
    constexpr int64_t busy = 1 << 17, each = 4;
    if constexpr (kHasPacks<Access>) {
        constexpr int width = kRowPack<typename Access::Element>;
        bool packed = step.dense && step.space.numel % width == 0;
        for (const TensorView& tensor : step.tensors)
            packed = packed && (!tensor.defined() || starts_pack(tensor.data));
        const int64_t packs = packed ? step.space.numel / width : 0;
        return packs < busy * each ? std::min(packs, busy) : (packs + each - 1) / each;
    }
    return 0;
}

void adam_step(Context ctx, const TensorView (&tensors)[5], const AdamSettings& settings, double count) {
    const StepTensors<5> step(tensors);
    require(!settings.amsgrad || tensors[4].defined(), "amsgrad needs max_exp_avg_sq");
    dispatch_access({&tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4]}, [&](auto access) {
        using Access = decltype(access);
        const auto run = [&](auto decoupled, auto amsgrad) {
            const int64_t threads = pack_threads<Access>(step);
            for_each(
                ctx, threads > 0 ? threads : chunks(step.space.numel, kAdamChunk),
                AdamTask<Access, decltype(decoupled)::value, decltype(amsgrad)::value>{step, settings, count, threads});
        };
        const auto with_decay = [&](auto decoupled) {
            settings.amsgrad ? run(decoupled, std::true_type{}) : run(decoupled, std::false_type{});
        };
        settings.decoupled ? with_decay(std::true_type{}) : with_decay(std::false_type{});
    });
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
        adam_step(ctx, tensors, settings, static_cast<double>(step));
    });
}

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

// Adam for lists: parameters, gradients, averages, averages of squares, their maxima.
template <bool amsgrad>
struct AdamLists {
    static constexpr int kTensors = amsgrad ? 5 : 4;

    AdamSettings settings;
    StepNumbers numbers;
    diopiDtype_t counted;  // the dtype of the steps
    const void* steps[kMostEntries];

    struct Known {
        bool skipped;
        float scale;
        double size, root, shrink;
        DIOPI_HD bool skips() const { return skipped; }
    };

    DIOPI_HD bool writes(int n) const { return n != 1 || numbers.grad_scale != nullptr; }

    DIOPI_HD Known entry(int k) const {
        AdamSettings own = settings;
        own.lr = numbers.rate_or(settings.lr);
        const Corrections corrections = Corrections::of(own, step(k));
        return {numbers.skips(), numbers.scale(), corrections.step_size, corrections.root,
                settings.decoupled ? own.lr * settings.weight_decay : 0.0};
    }

    DIOPI_HD double step(int k) const {
        switch (counted) {
            case diopi_dtype_int64: return static_cast<double>(*static_cast<const int64_t*>(steps[k]));
            case diopi_dtype_float64: return *static_cast<const double*>(steps[k]);
            default: return static_cast<double>(*static_cast<const float*>(steps[k]));
        }
    }

    template <class C>
    DIOPI_HD_INLINED void operator()(C (&values)[kTensors], const Known& known) const {
        C& param = values[0];
        values[1] = values[1] / C(known.scale);
        C gradient = settings.maximize ? -values[1] : values[1];
        gradient += C(settings.decoupled ? 0.0 : settings.weight_decay) * param;
        param -= C(known.shrink) * param;
        follow(values, settings, gradient, C(known.size), C(known.root));
    }
};

// SGD for lists: parameters, gradients, momentum buffers.
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
        values[1] = values[1] / C(known.scale);
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
    const AdamLists<amsgrad> op{settings, numbers, counted, {}};
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

    DIOPI_HD void operator()() const {
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
        const StepTensors<3> step(tensors);
        const bool kept = momentum != 0.0 && tensors[2].defined();
        const double rate = !kept && nesterov ? lr * (1.0 + momentum) : lr;  // without a buffer it is the first step
        dispatch_access({&tensors[0], &tensors[1], &tensors[2]}, [&](auto access) {
            using Access = decltype(access);
            using C = typename Access::Compute;
            const auto run = [&](auto has_momentum) {
                for_each(ctx, chunks(step.space.numel, kSgdChunk),
                         SgdTask<Access, decltype(has_momentum)::value>{
                             step, static_cast<C>(rate), static_cast<C>(momentum), static_cast<C>(dampening),
                             static_cast<C>(weight_decay), nesterov});
            };
            kept ? run(std::true_type{}) : run(std::false_type{});
        });
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
        const TensorView flag = required_view(found_inf, "found_inf");
        const TensorView factor = required_view(inv_scale, "inv_scale");
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
        run_once(ctx,
                 UpdateScaleTask{required_view(current_scale, "current_scale"),
                                 required_view(growth_tracker, "growth_tracker"), required_view(found_inf, "found_inf"),
                                 scale_growth_factor, scale_backoff_factor, growth_interval});
    });
}

}  // namespace impl::portable
