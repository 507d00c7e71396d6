// Batch normalization of each channel over all other dimensions, with its gradients.
#include <diopi/diopirt.h>

#include "core/channels.h"
#include "core/math.h"
#include "core/normalization.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class Access>
struct BatchNormTask {
    Rows<2> rows;  // out, input: one group per channel
    TensorView out;
    TensorView input;
    PerChannel weight, bias, running_mean, running_var, save_mean, save_invstd;
    bool training;
    double momentum;
    double eps;

    DIOPI_HD void operator()(int64_t channel, const Team& team = {}) const {
        const Offsets<2> base = rows.outer.offsets(channel);
        double mean = running_mean.get(channel, 0.0);
        double variance = running_var.get(channel, 1.0);
        if (training) {
            const auto count = static_cast<double>(rows.inner.numel);
            const Moments found = moments<Access>(rows.inner, base, 1, input, team);
            mean = found.mean;
            variance = found.variance;
            if (team.rank() == 0) {
                running_mean.blend(channel, mean, momentum);
                running_var.blend(channel, variance * count / (count - 1.0), momentum);
            }
        }
        const double invstd = 1.0 / math::sqrt(variance + eps);
        if (team.rank() == 0) {
            save_mean.set(channel, mean);
            save_invstd.set(channel, invstd);
        }
        scale_channel<Access>(rows.inner, base, team, 0, out, 1, input,
                              {mean, invstd * weight.get(channel, 1.0), bias.get(channel, 0.0)});
    }
};

template <class Access>
struct BatchNormBackwardTask {
    Rows<3> rows;  // grad_input, input, grad_output
    TensorView grad_input;
    TensorView input;
    TensorView grad_output;
    PerChannel grad_weight, grad_bias, weight, mean, invstd, running_mean, running_var;
    bool training;
    double eps;

    DIOPI_HD void operator()(int64_t channel, const Team& team = {}) const {
        const Offsets<3> base = rows.outer.offsets(channel);
        const double center = training ? mean.get(channel, 0.0) : running_mean.get(channel, 0.0);
        const double scale =
            training ? invstd.get(channel, 1.0) : 1.0 / math::sqrt(running_var.get(channel, 1.0) + eps);
        const GradientSums sums =
            team.reduce(gradient_sums<Access>(rows.inner, base, team, 1, input, 2, grad_output, center, scale), Plus{});
        if (team.rank() == 0) {
            grad_weight.set(channel, sums.gradient_normalized);
            grad_bias.set(channel, sums.gradient);
        }
        if (!grad_input.defined()) return;
        // in training the statistics depend on the input too: their share is the mean and the slope that go
        const double share = training ? 1.0 / static_cast<double>(rows.inner.numel) : 0.0;
        propagate_channel<Access>(rows.inner, base, team, grad_input, input, grad_output, center, scale,
                                  {sums.gradient * share, sums.gradient_normalized * share},
                                  scale * weight.get(channel, 1.0));
    }
};

}  // namespace

diopiError_t diopiBatchNorm(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiTensorHandle_t running_mean, diopiTensorHandle_t running_var, bool training,
                            double momentum, double eps) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        const int64_t channels = channels_of(operands[1]);
        require(training || (running_mean != nullptr && running_var != nullptr),
                "batch normalization needs running statistics outside of training");
        require(operands[0].same_sizes(operands[1]),
                "the output of a batch normalization has another shape than its input");
        dispatch_access({&operands[0], &operands[1]}, [&](auto access) {
            const BatchNormTask<decltype(access)> task{rows_of(operands, kChannelDim),
                                                       operands[0],
                                                       operands[1],
                                                       PerChannel(weight, channels),
                                                       PerChannel(bias, channels),
                                                       PerChannel(running_mean, channels),
                                                       PerChannel(running_var, channels),
                                                       PerChannel(save_mean, channels),
                                                       PerChannel(save_invstd, channels),
                                                       training,
                                                       momentum,
                                                       eps};
            for_each_by_teams(ctx, channels, task.rows.inner.numel, task);
        });
    });
}

diopiError_t diopiBatchNormBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                    diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t weight, diopiConstTensorHandle_t running_mean,
                                    diopiConstTensorHandle_t running_var, diopiConstTensorHandle_t save_mean,
                                    diopiConstTensorHandle_t save_invstd, bool training, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView gradient = required_view(grad_output, "grad_output");
        const TensorView target = view(grad_input);
        const int64_t channels = channels_of(x);
        require(!training || (save_mean != nullptr && save_invstd != nullptr),
                "the gradient of a batch normalization needs the statistics that training saved");
        require(gradient.same_sizes(x), "grad_output of a batch normalization has another shape than its input");
        require_storable(gradient);
        // an absent grad_input has no strides; the input then gives the shape
        const TensorView operands[3] = {target.defined() ? target : x, x, gradient};
        require(operands[0].same_sizes(x), "grad_input of a batch normalization has another shape than its input");
        dispatch_access({&operands[0], &operands[1], &operands[2]}, [&](auto access) {
            const BatchNormBackwardTask<decltype(access)> task{rows_of(operands, kChannelDim),
                                                               target,
                                                               x,
                                                               gradient,
                                                               PerChannel(grad_weight, channels),
                                                               PerChannel(grad_bias, channels),
                                                               PerChannel(weight, channels),
                                                               PerChannel(save_mean, channels),
                                                               PerChannel(save_invstd, channels),
                                                               PerChannel(running_mean, channels),
                                                               PerChannel(running_var, channels),
                                                               training,
                                                               eps};
            for_each_by_teams(ctx, channels, task.rows.inner.numel, task);
        });
    });
}

}  // namespace impl::portable
