// Batch normalization of each channel over all other dimensions, with its gradients.
#include <diopi/diopirt.h>

#include "core/access.h"
#include "core/math.h"
#include "core/rows.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

constexpr uint32_t kChannelDim = 1u << 1;

// A vector with one value per channel; callers may leave any of them out, as null or as a tensor without elements.
struct PerChannel {
    TensorView tensor;

    explicit PerChannel(diopiConstTensorHandle_t handle, int64_t channels) : tensor(view(handle)) {
        if (tensor.defined() && tensor.numel == 0 && channels > 0) tensor = undefined_view();
        if (!tensor.defined()) return;
        require(tensor.ndim == 1 && tensor.sizes[0] == channels,
                "a normalization has %lld channels, but a vector of %lld values", static_cast<long long>(channels),
                static_cast<long long>(tensor.numel));
        require_storable(tensor);
    }

    DIOPI_HD bool defined() const { return tensor.defined(); }
    DIOPI_HD double get(int64_t channel, double otherwise) const {
        return defined() ? load_as<double>(tensor, channel * tensor.strides[0]) : otherwise;
    }
    DIOPI_HD void set(int64_t channel, double value) const {
        if (defined()) store_as(tensor, channel * tensor.strides[0], value);
    }
};

int64_t channels_of(const TensorView& input) {
    require(input.ndim >= 2, "batch normalization needs at least two dimensions, the input has %d", input.ndim);
    return input.sizes[1];
}

template <class Access>
struct BatchNormTask {
    using C = typename Access::Compute;

    Rows<2> rows;  // out, input: one group per channel
    TensorView out;
    TensorView input;
    PerChannel weight, bias, running_mean, running_var, save_mean, save_invstd;
    bool training;
    double momentum;
    double eps;

    DIOPI_HD void operator()(int64_t channel) const {
        const Offsets<2> base = rows.outer.offsets(channel);
        double mean = running_mean.get(channel, 0.0);
        double variance = running_var.get(channel, 1.0);
        if (training) {
            const auto count = static_cast<double>(rows.inner.numel);
            mean = sum<Access>(rows.inner, base, 1, input, [](double x) { return x; }) / count;
            const double squares =
                sum<Access>(rows.inner, base, 1, input, [mean](double x) { return (x - mean) * (x - mean); });
            variance = squares / count;
            track(channel, mean, squares / (count - 1.0));
        }
        const double invstd = 1.0 / math::sqrt(variance + eps);
        save_mean.set(channel, mean);
        save_invstd.set(channel, invstd);
        normalize(base, mean, invstd * weight.get(channel, 1.0), bias.get(channel, 0.0));
    }

    DIOPI_HD void track(int64_t channel, double mean, double unbiased_variance) const {
        running_mean.set(channel, (1.0 - momentum) * running_mean.get(channel, 0.0) + momentum * mean);
        running_var.set(channel, (1.0 - momentum) * running_var.get(channel, 0.0) + momentum * unbiased_variance);
    }

    DIOPI_HD void normalize(const Offsets<2>& base, double mean, double scale, double shift) const {
        const C center = static_cast<C>(mean);
        const C slope = static_cast<C>(scale);
        const C level = static_cast<C>(shift);
        const int64_t out_stride = rows.inner.inner_stride(0);
        const int64_t stride = rows.inner.inner_stride(1);
        for_each_inner_run(rows.inner, base, [&](const Offsets<2>& at, int64_t count) {
            for (int64_t k = 0; k < count; ++k) {
                const C value = Access::template load<C>(input, at.at[1] + k * stride);
                Access::store(out, at.at[0] + k * out_stride, (value - center) * slope + level);
            }
        });
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

    struct Sums {
        double gradient;             // of grad_output
        double gradient_normalized;  // of grad_output times the normalized input
    };

    DIOPI_HD void operator()(int64_t channel) const {
        const Offsets<3> base = rows.outer.offsets(channel);
        const double center = training ? mean.get(channel, 0.0) : running_mean.get(channel, 0.0);
        const double scale =
            training ? invstd.get(channel, 1.0) : 1.0 / math::sqrt(running_var.get(channel, 1.0) + eps);
        const Sums sums = sums_of(base, center, scale);
        grad_weight.set(channel, sums.gradient_normalized);
        grad_bias.set(channel, sums.gradient);
        if (grad_input.defined()) propagate(channel, base, center, scale, sums);
    }

    DIOPI_HD Sums sums_of(const Offsets<3>& base, double center, double scale) const {
        Sums sums{0, 0};
        const int64_t stride = rows.inner.inner_stride(1);
        const int64_t grad_stride = rows.inner.inner_stride(2);
        for_each_inner_run(rows.inner, base, [&](const Offsets<3>& at, int64_t count) {
            for (int64_t k = 0; k < count; ++k) {
                const double gradient = Access::template load<double>(grad_output, at.at[2] + k * grad_stride);
                sums.gradient += gradient;
                sums.gradient_normalized +=
                    gradient * (Access::template load<double>(input, at.at[1] + k * stride) - center) * scale;
            }
        });
        return sums;
    }

    // In training the statistics depend on the input too: their share is the mean and the slope that go.
    DIOPI_HD void propagate(int64_t channel, const Offsets<3>& base, double center, double scale,
                            const Sums& sums) const {
        const auto count_all = static_cast<double>(rows.inner.numel);
        const double mean_gradient = training ? sums.gradient / count_all : 0.0;
        const double slope = training ? sums.gradient_normalized / count_all : 0.0;
        const double factor = scale * weight.get(channel, 1.0);
        const int64_t stride = rows.inner.inner_stride(1);
        const int64_t grad_stride = rows.inner.inner_stride(2);
        const int64_t out_stride = rows.inner.inner_stride(0);
        for_each_inner_run(rows.inner, base, [&](const Offsets<3>& at, int64_t count) {
            for (int64_t k = 0; k < count; ++k) {
                const double normalized =
                    (Access::template load<double>(input, at.at[1] + k * stride) - center) * scale;
                const double gradient = Access::template load<double>(grad_output, at.at[2] + k * grad_stride);
                Access::store(grad_input, at.at[0] + k * out_stride,
                              (gradient - mean_gradient - normalized * slope) * factor);
            }
        });
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
            for_each(ctx, channels, task);
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
            for_each(ctx, channels, task);
        });
    });
}

}  // namespace impl::portable
