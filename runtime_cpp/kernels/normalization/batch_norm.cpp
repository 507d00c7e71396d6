// Batch normalization of each channel over all other dimensions, with its gradients.
#include <diopi/diopirt.h>

#include "channels.h"
#include "math/math.h"
#include "normalization.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class Access>
struct BatchNormReduction : MomentsReduction<Access, Rows<1>> {
    using C = typename Access::Compute;
    using Base = MomentsReduction<Access, Rows<1>>;

    PerChannel weight, bias, running_mean, running_var, save_mean, save_invstd;
    bool training;
    double momentum;
    double eps;

    DIOPI_HD Moments state(int64_t channel, const Part<1>& part, const Team& team) const {
        if (training) return Base::state(channel, part, team);
        return {running_mean.get(channel, 0.0), running_var.get(channel, 1.0), 0.0};
    }
    DIOPI_HD Scaling<C> finish(int64_t channel, const Moments& found) const {
        if (training) {
            running_mean.blend(channel, found.mean, momentum);
            running_var.blend(channel, found.variance * found.count / (found.count - 1.0), momentum);
        }
        const double invstd = found.scale(eps);
        save_mean.set(channel, found.mean);
        save_invstd.set(channel, invstd);
        return {static_cast<C>(found.mean), static_cast<C>(invstd * weight.get(channel, 1.0)),
                static_cast<C>(bias.get(channel, 0.0))};
    }
};

template <class Access>
struct BatchNormBackwardReduction : GradientSumsReduction<Access> {  // about the mean
    using C = typename Access::Compute;

    PerChannel grad_weight, grad_bias, weight, invstd, running_var;
    bool training;
    double eps;

    DIOPI_HD Propagation<C> finish(int64_t channel, const GradientSums& sums) const {
        const double scale =
            training ? invstd.get(channel, 1.0) : 1.0 / math::sqrt(running_var.get(channel, 1.0) + eps);
        const double slope = sums.second * scale;
        grad_weight.set(channel, slope);
        grad_bias.set(channel, sums.first);
        // in training the statistics depend on the input too: their share is the mean and the slope that go
        const double share = training ? 1.0 / static_cast<double>(this->space.inner.numel) : 0.0;
        return {static_cast<C>(this->center.get(channel, 0.0)), static_cast<C>(scale),
                static_cast<C>(sums.first * share), static_cast<C>(slope * share),
                static_cast<C>(scale * weight.get(channel, 1.0))};
    }
};

}  // namespace

diopiError_t diopiBatchNorm(Context ctx, Tensor out, Tensor save_mean, Tensor save_invstd, ConstTensor input,
                            ConstTensor weight, ConstTensor bias, Tensor running_mean, Tensor running_var,
                            bool training, double momentum, double eps) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        require(training || (running_mean != nullptr && running_var != nullptr),
                "batch normalization needs running statistics outside of training");
        require(operands[0].same_sizes(operands[1]),
                "the output of a batch normalization has another shape than its input");
        with_common_dtype(ctx, operands, 1, [&](const TensorView(&typed)[2]) {
            const TensorView inputs[1] = {typed[1]};
            Rows<1> rows = rows_of(inputs, kChannelDim);
            if (!training) rows.inner = {};  // which is not looked at
            change_channels<BatchNormReduction>(ctx, typed, rows, typed[1], weight, bias, running_mean, running_var,
                                                save_mean, save_invstd, training, momentum, eps);
        });
    });
}

diopiError_t diopiBatchNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                    ConstTensor grad_output, ConstTensor input, ConstTensor weight,
                                    ConstTensor running_mean, ConstTensor running_var, ConstTensor save_mean,
                                    ConstTensor save_invstd, bool training, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input"), gradient = required_view(grad_output, "grad_output");
        const TensorView target = view(grad_input);
        require(!training || (save_mean != nullptr && save_invstd != nullptr),
                "the gradient of a batch normalization needs the statistics that training saved");
        require(gradient.same_sizes(x), "grad_output of a batch normalization has another shape than its input");
        require_storable(gradient);
        require(!target.defined() || target.same_sizes(x),
                "grad_input of a batch normalization has another shape than its input");
        const TensorView operands[3] = {target, x, gradient};
        with_common_dtype(ctx, operands, 1, [&](const TensorView(&typed)[3]) {
            const TensorView summed[2] = {typed[1], typed[2]};
            change_channels<BatchNormBackwardReduction>(ctx, typed, rows_of(summed, kChannelDim), typed[1], typed[2],
                                                        training ? save_mean : running_mean, grad_weight, grad_bias,
                                                        weight, save_invstd, running_var, training, eps);
        });
    });
}

}  // namespace impl::portable
