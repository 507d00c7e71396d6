// The steps of a batch normalization over several devices, as torch and as mmcv cut them.
#include <diopi/diopirt.h>

#include "channels.h"
#include "core/view.h"
#include "math/math.h"
#include "normalization.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The mean square about a mean that is given.
template <class Access>
struct DeviationReduction {
    using State = double;

    Rows<1> space;
    TensorView input;
    PerChannel mean, variance;

    DIOPI_HD double start() const { return 0; }
    DIOPI_HD double join(double a, double b) const { return a + b; }
    DIOPI_HD double state(int64_t channel, const Part<1>& part, const Team& team) const {
        const double center = mean.get(channel, 0.0);
        return sum<Access>(part.inner, part.base, 0, input, team,
                           [center](double x) { return (x - center) * (x - center); });
    }
    DIOPI_HD void finish(int64_t channel, double squares) const {
        variance.set(channel, squares / static_cast<double>(space.inner.numel));
    }
};

// Squared deviations add up: those of each device about its own mean, and of the means about the common one.
template <class Access>
struct GatherTask {
    TensorView means;    // [device, channel]
    TensorView invstds;  // [device, channel]
    TensorView counts;   // [device]
    PerChannel mean, invstd, running_mean, running_var;
    double momentum;
    double eps;

    DIOPI_HD double count(int64_t d) const { return Access::template load<double>(counts, d * counts.strides[0]); }
    DIOPI_HD double at(const TensorView& values, int64_t device, int64_t channel) const {
        return Access::template load<double>(values, device * values.strides[0] + channel * values.strides[1]);
    }

    DIOPI_HD void operator()(int64_t channel, const Team& team = {}) const {
        const auto devices = stripe_of(team, counts.sizes[0]);
        const auto weighed = [&](int64_t d) { return TwoSums<double>{count(d), count(d) * at(means, d, channel)}; };
        const TwoSums<double> sums = team.reduce(sum_of_run(devices, weighed), Plus{});
        const double total = sums.first, common = sums.second / total;
        const auto squared = [&](int64_t d) {
            const double scale = at(invstds, d, channel), distance = at(means, d, channel) - common;
            return count(d) * (1.0 / (scale * scale) - eps + distance * distance);
        };
        const double squares = team.reduce(sum_of_run(devices, squared), Plus{});
        if (team.rank() != 0) return;
        mean.set(channel, common);
        invstd.set(channel, 1.0 / math::sqrt(squares / total + eps));
        running_mean.blend(channel, common, momentum);
        running_var.blend(channel, squares / (total - 1.0), momentum);
    }
};

template <class Access>
struct ElementsReduction : NothingReduced {
    using C = typename Access::Compute;

    PerChannel weight, bias, mean, invstd;

    DIOPI_HD Scaling<C> finish(int64_t channel, State) const {
        return {static_cast<C>(mean.get(channel, 0.0)),
                static_cast<C>(invstd.get(channel, 1.0) * weight.get(channel, 1.0)),
                static_cast<C>(bias.get(channel, 0.0))};
    }
};

// Of output, norm and input; the second may be undefined.
template <class C>
struct TwoScalings {
    static constexpr int kResults = 2;

    Scaling<C> output, norm;

    template <class Access, class At>
    DIOPI_HD_INLINED void apply(const TensorView* tensors, const At& at) const {
        if (tensors[1].defined()) norm.template apply<Access>(tensors, at, 1, 2);
        output.template apply<Access>(tensors, at, 0, 2);
    }
};

template <class Access>
struct OutputReduction : NothingReduced {
    using C = typename Access::Compute;

    PerChannel running_mean, running_var, std, mean, var, weight, bias;
    double eps, momentum;
    double count;  // of a channel's elements on all devices

    DIOPI_HD TwoScalings<C> finish(int64_t channel, State) const {
        const double center = mean.get(channel, 0.0);
        const double variance = var.get(channel, 0.0);
        const double deviation = math::sqrt(variance + eps);
        std.set(channel, deviation);
        running_mean.blend(channel, center, momentum);
        running_var.blend(channel, count > 1.0 ? variance * count / (count - 1.0) : variance, momentum);
        const auto middle = static_cast<C>(center);
        return {{middle, static_cast<C>(weight.get(channel, 1.0) / deviation), static_cast<C>(bias.get(channel, 0.0))},
                {middle, static_cast<C>(1.0 / deviation), C(0)}};
    }
};

// About an absent mean of zero, with an absent invstd of one: the input is normalized already.
template <class Access>
struct ParameterSumsReduction : GradientSumsReduction<Access> {
    PerChannel invstd, sum, product, grad_weight, grad_bias;

    DIOPI_HD void finish(int64_t channel, const GradientSums& sums) const {
        sum.set(channel, sums.first);
        product.set(channel, sums.second);
        grad_weight.set(channel, sums.second * invstd.get(channel, 1.0));
        grad_bias.set(channel, sums.first);
    }
};

template <class Access>
struct InputGradientReduction : NothingReduced {
    using C = typename Access::Compute;

    PerChannel mean, invstd, std, weight;
    PerChannel sum, product;  // of the gradient, and of its products with the input less its mean
    TensorView counts;        // one per device; undefined where `count` says it
    double count;

    DIOPI_HD Propagation<C> finish(int64_t channel, State) const {
        double total = count;
        for (int64_t k = 0; counts.defined() && k < counts.numel; ++k)
            total += load_as<double>(counts, k * counts.strides[0]);
        const double scale = invstd.get(channel, 1.0);
        return {static_cast<C>(mean.get(channel, 0.0)), static_cast<C>(scale),
                static_cast<C>(sum.get(channel, 0.0) / total),
                static_cast<C>(product.get(channel, 0.0) * scale / total),
                static_cast<C>(scale * weight.get(channel, 1.0) / std.get(channel, 1.0))};
    }
};

int64_t elements_of_channel(const TensorView& input) {
    const int64_t channels = channels_of(input);
    return channels == 0 ? 0 : input.numel / channels;
}

// Changes the elements by what `settings` say of their channels; the first `results` operands are written.
template <template <class> class Reduction, int N, class... Settings>
void change_by_statistics(Context ctx, const TensorView (&operands)[N], int results, const Settings&... settings) {
    const NothingReduced none(channels_of(operands[N - 1]));
    with_common_dtype(ctx, operands, results,
                      [&](const TensorView(&typed)[N]) { change_channels<Reduction>(ctx, typed, none, settings...); });
}

}  // namespace

diopiError_t diopiBatchNormStats(Context ctx, Tensor mean, Tensor invstd, ConstTensor input, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        channels_of(x);
        keep_moments(ctx, x, kChannelDim, {view(mean), view(invstd)}, eps);
    });
}

diopiError_t diopiBatchNormGatherStatsWithCounts(Context ctx, Tensor mean, Tensor invstd, ConstTensor input,
                                                 ConstTensor mean_all, ConstTensor invstd_all, Tensor running_mean,
                                                 Tensor running_var, float momentum, float eps, ConstTensor counts) {
    return guarded([&] {
        const int64_t channels = channels_of(required_view(input, "input"));
        const TensorView all[3] = {required_view(mean_all, "mean_all"), required_view(invstd_all, "invstd_all"),
                                   at_least_1d(required_view(counts, "counts"))};
        require(all[0].ndim == 2 && all[0].sizes[1] == channels && all[1].same_sizes(all[0]) && all[2].ndim == 1 &&
                    all[2].sizes[0] == all[0].sizes[0],
                "each device gives the mean, the invstd and the count of each channel");
        const PerChannel kept[4] = {
            {mean, channels}, {invstd, channels}, {running_mean, channels}, {running_var, channels}};
        with_common_dtype(ctx, all, 0, [&](const TensorView(&typed)[3]) {
            dispatch_typed(typed, [&](auto access) {
                for_each_by_teams(ctx, channels, all[2].sizes[0],
                                  GatherTask<decltype(access)>{typed[0], typed[1], typed[2], kept[0], kept[1], kept[2],
                                                               kept[3], momentum, eps});
            });
        });
    });
}

diopiError_t diopiBatchNormElemt(Context ctx, Tensor out, ConstTensor input, ConstTensor weight, ConstTensor bias,
                                 ConstTensor mean, ConstTensor invstd, float) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        change_by_statistics<ElementsReduction>(ctx, operands, 1, weight, bias, mean, invstd);
    });
}

diopiError_t diopiBatchNormBackwardReduce(Context ctx, Tensor sum_dy, Tensor sum_dy_xmu, Tensor grad_weight,
                                          Tensor grad_bias, ConstTensor grad_out, ConstTensor input, ConstTensor mean,
                                          ConstTensor invstd, ConstTensor, bool input_g, bool weight_g, bool bias_g) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(input, "input"), required_view(grad_out, "grad_out")};
        const int64_t channels = channels_of(operands[0]);
        const auto wanted = [&](bool asked, Tensor result) { return PerChannel(asked ? result : nullptr, channels); };
        with_common_dtype(ctx, operands, 0, [&](const TensorView(&typed)[2]) {
            reduce_channels<ParameterSumsReduction>(ctx, typed, typed[0], typed[1], mean, invstd,
                                                    wanted(input_g, sum_dy), wanted(input_g, sum_dy_xmu),
                                                    wanted(weight_g, grad_weight), wanted(bias_g, grad_bias));
        });
    });
}

diopiError_t diopiBatchNormBackwardElemt(Context ctx, Tensor grad_input, ConstTensor grad_out, ConstTensor input,
                                         ConstTensor mean, ConstTensor invstd, ConstTensor weight, ConstTensor sum_dy,
                                         ConstTensor sum_dy_xmu, ConstTensor count) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"), required_view(input, "input"),
                                        required_view(grad_out, "grad_out")};
        // A column of them is what torch gathers.
        const TensorView given = at_least_1d(required_view(count, "count"));
        require(joins(given, 0, given.ndim - 1), "'count' has a number for each device, evenly spaced");
        const TensorView counts = joined(given, 0, given.ndim - 1);
        require_storable(counts);
        change_by_statistics<InputGradientReduction>(ctx, operands, 1, mean, invstd, nullptr, weight, sum_dy,
                                                     sum_dy_xmu, counts, 0.0);
    });
}

diopiError_t diopiSyncBnMeanMmcv(Context ctx, Tensor mean, ConstTensor input) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        channels_of(x);
        keep_moments(ctx, x, kChannelDim, {required_view(mean, "mean")}, 0.0);
    });
}

diopiError_t diopiSyncBnVarMmcv(Context ctx, Tensor var, ConstTensor input, ConstTensor mean) {
    return guarded([&] {
        with_common_dtype(ctx, {required_view(input, "input")}, 0, [&](const TensorView(&typed)[1]) {
            reduce_channels<DeviationReduction>(ctx, typed, typed[0], mean, var);
        });
    });
}

diopiError_t diopiSyncBnOutputMmcv(Context ctx, Tensor running_mean, Tensor running_var, Tensor norm, Tensor std,
                                   Tensor output, ConstTensor input, ConstTensor mean, ConstTensor var,
                                   ConstTensor weight, ConstTensor bias, float eps, float momentum,
                                   int64_t group_size) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(output, "output"), view(norm), required_view(input, "input")};
        const int64_t count = elements_of_channel(operands[2]);
        change_by_statistics<OutputReduction>(ctx, operands, 2, running_mean, running_var, std, mean, var, weight, bias,
                                              static_cast<double>(eps), static_cast<double>(momentum),
                                              static_cast<double>(count * group_size));
    });
}

diopiError_t diopiSyncBnBackwardParamMmcv(Context ctx, Tensor grad_weight, Tensor grad_bias, ConstTensor grad_output,
                                          ConstTensor norm) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(norm, "norm"), required_view(grad_output, "grad_output")};
        with_common_dtype(ctx, operands, 0, [&](const TensorView(&typed)[2]) {
            reduce_channels<ParameterSumsReduction>(ctx, typed, typed[0], typed[1], nullptr, nullptr, nullptr, nullptr,
                                                    grad_weight, grad_bias);
        });
    });
}

diopiError_t diopiSyncBnBackwardDataMmcv(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor weight,
                                         ConstTensor grad_weight, ConstTensor grad_bias, ConstTensor norm,
                                         ConstTensor std) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"), required_view(norm, "norm"),
                                        required_view(grad_output, "grad_output")};
        const int64_t count = elements_of_channel(operands[1]);
        change_by_statistics<InputGradientReduction>(ctx, operands, 1, nullptr, nullptr, std, weight, grad_bias,
                                                     grad_weight, undefined_view(), static_cast<double>(count));
    });
}

}  // namespace impl::portable
