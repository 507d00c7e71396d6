// Normalization of the channels of each sample, alone (instance normalization) or in groups, and the gradients.
#include <diopi/diopirt.h>

#include "core/channels.h"
#include "core/normalization.h"
#include "core/view.h"
#include "core/workspace.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// `channels` of a tensor as [groups, channels of a group].
TensorView grouped(TensorView tensor, int channels, int64_t groups) {
    const int64_t per_group = groups == 0 ? 1 : tensor.sizes[channels] / groups;
    const int64_t stride = tensor.strides[channels];
    tensor.sizes[channels] = groups;
    tensor.strides[channels] = stride * per_group;
    return with_dim(tensor, channels + 1, per_group, stride);
}

// Groups of the channels along `axis`, in each sample along dimension 0.
struct Groups {
    int axis;
    int64_t channels;
    int64_t count;
    int64_t samples;
    int trailing;   // dimensions behind the channels
    uint32_t dims;  // of samples and groups, in what grouped() gives

    Groups(const TensorView& input, int64_t along, int64_t groups) : axis(normalized_dim(along, input.ndim)) {
        require(input.ndim >= 2 && axis > 0, "a group normalization needs samples along dimension 0, then channels");
        channels = input.sizes[axis];
        count = groups < 0 ? channels : groups;
        require(count == channels || (count > 0 && channels % count == 0), "%lld channels do not fall into %lld groups",
                static_cast<long long>(channels), static_cast<long long>(count));
        samples = input.sizes[0];
        trailing = input.ndim - 1 - axis;
        dims = 1u | 1u << axis;
    }

    TensorView of(const TensorView& tensor) const { return grouped(tensor, axis, count); }
    // A vector with a value per channel, as it broadcasts to what of() gives.
    TensorView vector(ConstTensor handle) const {
        TensorView values = PerChannel(handle, channels).tensor;
        if (!values.defined()) return values;
        values = grouped(values, 0, count);
        for (int k = 0; k < trailing; ++k) values = with_dim(values, values.ndim, 1, 0);
        return values;
    }
};

constexpr int64_t kEachChannel = -1;

// A channel of all samples; `rows` are the samples, without the channels.
template <class Access>
struct ChannelParameterTask {
    Rows<2> rows;  // input, grad_output
    TensorView input;
    TensorView grad_output;
    int axis;  // of the channels
    PerRow mean, scale;
    int64_t channels, groups;
    PerChannel grad_weight, grad_bias;

    DIOPI_HD void operator()(int64_t channel, const Team& team = {}) const {
        GradientSums mine{0, 0};
        for (int64_t sample = 0; sample < rows.outer.numel; ++sample) {
            const Offsets<2> start = rows.outer.offsets(sample);
            const Offsets<2> base{
                {start.at[0] + channel * input.strides[axis], start.at[1] + channel * grad_output.strides[axis]}};
            const int64_t row = sample * groups + channel / (channels / groups);
            mine = mine + gradient_sums<Access>(rows.inner, base, team, input, grad_output, mean.get(row),
                                                scale.get(row));
        }
        const GradientSums sums = team.reduce(mine, Plus{});
        if (team.rank() != 0) return;
        grad_weight.set(channel, sums.second);
        grad_bias.set(channel, sums.first);
    }
};

void normalize(Context ctx, Tensor out, const TensorView& input, const Groups& groups, ConstTensor weight,
               ConstTensor bias, const MomentTensors& kept, double eps) {
    const TensorView result = required_view(out, "out");
    require_same_sizes(result, input, "out", "input");
    const TensorView operands[4] = {groups.of(result), groups.of(input), groups.vector(weight), groups.vector(bias)};
    normalize_groups(ctx, operands, groups.dims, true, kept, eps);
}

void normalize_backward(Context ctx, Tensor grad_input, const PerChannel& grad_weight, const PerChannel& grad_bias,
                        const TensorView& gradient, const TensorView& input, ConstTensor weight, const TensorView& mean,
                        const TensorView& scale, const Groups& groups) {
    require_same_sizes(gradient, input, "grad_output", "input");
    const PerRow means(mean, groups.samples * groups.count);
    const PerRow scales(scale, groups.samples * groups.count);
    if (grad_input != nullptr) {
        const TensorView result = view(grad_input);
        require_same_sizes(result, input, "grad_input", "input");
        const TensorView operands[4] = {groups.of(result), groups.of(input), groups.vector(weight),
                                        groups.of(gradient)};
        propagate_groups(ctx, operands, groups.dims, true, means, scales);
    }
    if (!grad_weight.defined() && !grad_bias.defined()) return;
    const TensorView summed[2] = {input, gradient};
    with_common_dtype(ctx, summed, 0, [&](const TensorView (&typed)[2]) {
        const TensorView operands[2] = {without_dim(typed[0], groups.axis), without_dim(typed[1], groups.axis)};
        const Rows<2> rows = rows_of(operands, 1u);
        dispatch_typed(typed, [&](auto access) {
            const ChannelParameterTask<decltype(access)> task{rows,        typed[0], typed[1],        groups.axis,
                                                              means,       scales,   groups.channels, groups.count,
                                                              grad_weight, grad_bias};
            for_each_by_teams(ctx, groups.channels, rows.inner.numel, task);
        });
    });
}

}  // namespace

diopiError_t diopiGroupNorm(Context ctx, Tensor out, Tensor save_mean, Tensor save_invstd, ConstTensor input,
                            ConstTensor weight, ConstTensor bias, int64_t num_groups, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        require(num_groups > 0, "a group normalization has at least one group");
        const MomentTensors kept{view(save_mean), view(save_invstd), undefined_view()};
        normalize(ctx, out, x, Groups(x, 1, num_groups), weight, bias, kept, eps);
    });
}

diopiError_t diopiGroupNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                    ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor mean,
                                    ConstTensor rstd, int64_t num_groups) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        require(num_groups > 0, "a group normalization has at least one group");
        const Groups groups(x, 1, num_groups);
        normalize_backward(ctx, grad_input, PerChannel(grad_weight, groups.channels),
                           PerChannel(grad_bias, groups.channels), required_view(grad_output, "grad_output"), x, weight,
                           required_view(mean, "mean"), required_view(rstd, "rstd"), groups);
    });
}

diopiError_t diopiInstanceNorm(Context ctx, Tensor output, ConstTensor input, const int64_t axis, ConstTensor scale,
                               ConstTensor bias, const double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        normalize(ctx, output, x, Groups(x, axis, kEachChannel), scale, bias, {}, eps);
    });
}

// The moments are found anew: the forward function keeps none.
diopiError_t diopiInstanceNormBackward(Context ctx, Tensor grad_input, Tensor grad_scale, Tensor grad_bias,
                                       ConstTensor grad_output, ConstTensor input, ConstTensor scale, ConstTensor,
                                       const int64_t axis, const double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const Groups groups(x, axis, kEachChannel);
        const int64_t sizes[2] = {groups.samples, groups.channels};
        const MomentTensors kept{temporary(ctx, sizes, 2, diopi_dtype_float64),
                                 temporary(ctx, sizes, 2, diopi_dtype_float64), undefined_view()};
        keep_moments(ctx, x, groups.dims, kept, eps);
        normalize_backward(ctx, grad_input, PerChannel(grad_scale, groups.channels),
                           PerChannel(grad_bias, groups.channels), required_view(grad_output, "grad_output"), x, scale,
                           kept.mean, kept.scale, groups);
    });
}

}  // namespace impl::portable
