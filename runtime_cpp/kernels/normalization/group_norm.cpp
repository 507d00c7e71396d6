// Normalization of the channels of each sample, alone (instance normalization) or in groups, and the gradients.
#include <diopi/diopirt.h>

#include "channels.h"
#include "core/view.h"
#include "core/workspace.h"
#include "normalization.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Dimension `channels` of a tensor as [groups, channels of a group].
TensorView grouped(TensorView tensor, int channels, int64_t groups) {
    const int64_t per_group = groups == 0 ? 1 : tensor.sizes[channels] / groups;
    const int64_t stride = tensor.strides[channels];
    tensor.sizes[channels] = groups;
    tensor.strides[channels] = stride * per_group;
    return with_dim(tensor, channels + 1, per_group, stride);
}

// Groups of the channels along dimension 1, in each sample along dimension 0. Dimensions before `first` are not
// normalized over.
struct Groups {
    int64_t channels;
    int64_t count;
    int first;
    int trailing;        // dimensions behind the channels
    uint32_t dims;       // that are not normalized over, in what of() gives
    int64_t places = 1;  // of a group's channels, each normalized on its own
    int64_t statistics;

    Groups(const TensorView& input, int64_t groups, int first)
        : channels(input.ndim < 2 ? 0 : input.sizes[1]),
          count(groups),
          first(first),
          trailing(input.ndim - 2),
          dims(3u | ((1u << (first - 2)) - 1u) << 3) {
        require(input.ndim >= 2, "a group normalization needs samples along dimension 0, then channels");
        require(count == channels || (count > 0 && channels % count == 0), "%lld channels do not fall into %lld groups",
                channels, count);
        for (int d = 2; d < first; ++d) places *= input.sizes[d];
        statistics = input.sizes[0] * count * places;
    }

    // Of each channel alone, or of all of them where `axis` is theirs.
    static Groups of_instances(const TensorView& input, int64_t axis) {
        const int first = normalized_dim(axis, input.ndim);
        require(first > 0, "an instance normalization needs samples along dimension 0, then channels");
        return Groups(input, first == 1 ? 1 : input.sizes[1], first < 2 ? 2 : first);
    }

    TensorView of(const TensorView& tensor) const { return grouped(tensor, 1, count); }
    // A vector with a value per channel, as it broadcasts to what of() gives.
    TensorView vector(ConstTensor handle) const {
        TensorView values = PerChannel(handle, channels).tensor;
        if (!values.defined()) return values;
        values = grouped(values, 0, count);
        for (int k = 0; k < trailing; ++k) values = with_dim(values, values.ndim, 1, 0);
        return values;
    }
    // The number of the group that has a channel at a place of all samples' ones.
    DIOPI_HD int64_t row(int64_t place, int64_t channel) const {
        return (place / places * count + channel / (channels / count)) * places + place % places;
    }
};

// A channel of all samples; `rows` are its places in them.
template <class Access>
struct ChannelParameterTask {
    Rows<2> rows;  // input, grad_output
    TensorView input, grad_output;
    Groups groups;
    PerRow mean, scale;
    PerChannel grad_weight, grad_bias;

    DIOPI_HD void operator()(int64_t channel, const Team& team = {}) const {
        GradientSums mine{0, 0};
        for (int64_t place = 0; place < rows.outer.numel; ++place) {
            const Offsets<2> start = rows.outer.offsets(place);
            const Offsets<2> base{
                {start.at[0] + channel * input.strides[1], start.at[1] + channel * grad_output.strides[1]}};
            const int64_t row = groups.row(place, channel);
            mine =
                mine + gradient_sums<Access>(rows.inner, base, team, input, grad_output, mean.get(row), scale.get(row));
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
    const PerRow means(mean, groups.statistics), scales(scale, groups.statistics);
    if (grad_input != nullptr) {
        const TensorView result = view(grad_input);
        require_same_sizes(result, input, "grad_input", "input");
        const TensorView operands[4] = {groups.of(result), groups.of(input), groups.vector(weight),
                                        groups.of(gradient)};
        propagate_groups(ctx, operands, groups.dims, true, means, scales);
    }
    if (!grad_weight.defined() && !grad_bias.defined()) return;
    const TensorView summed[2] = {input, gradient};
    with_common_dtype(ctx, summed, 0, [&](const TensorView(&typed)[2]) {
        const TensorView operands[2] = {without_dim(typed[0], 1), without_dim(typed[1], 1)};
        const Rows<2> rows = rows_of(operands, (1u << (groups.first - 1)) - 1u);
        dispatch_typed(typed, [&](auto access) {
            const ChannelParameterTask<decltype(access)> task{rows,  typed[0], typed[1],    groups,
                                                              means, scales,   grad_weight, grad_bias};
            for_each_by_teams(ctx, groups.channels, rows.inner.numel, task);
        });
    });
}

}  // namespace

diopiError_t diopiGroupNorm(Context ctx, Tensor out, Tensor save_mean, Tensor save_invstd, ConstTensor input,
                            ConstTensor weight, ConstTensor bias, int64_t num_groups, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const MomentTensors kept{view(save_mean), view(save_invstd)};
        normalize(ctx, out, x, Groups(x, num_groups, 2), weight, bias, kept, eps);
    });
}

diopiError_t diopiGroupNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                    ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor mean,
                                    ConstTensor rstd, int64_t num_groups) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const Groups groups(x, num_groups, 2);
        normalize_backward(ctx, grad_input, PerChannel(grad_weight, groups.channels),
                           PerChannel(grad_bias, groups.channels), required_view(grad_output, "grad_output"), x, weight,
                           required_view(mean, "mean"), required_view(rstd, "rstd"), groups);
    });
}

diopiError_t diopiInstanceNorm(Context ctx, Tensor output, ConstTensor input, const int64_t axis, ConstTensor scale,
                               ConstTensor bias, const double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        normalize(ctx, output, x, Groups::of_instances(x, axis), scale, bias, {}, eps);
    });
}

// The moments are found anew: the forward function keeps none.
diopiError_t diopiInstanceNormBackward(Context ctx, Tensor grad_input, Tensor grad_scale, Tensor grad_bias,
                                       ConstTensor grad_output, ConstTensor input, ConstTensor scale, ConstTensor,
                                       const int64_t axis, const double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const Groups groups = Groups::of_instances(x, axis);
        const MomentTensors kept{temporary(ctx, &groups.statistics, 1, diopi_dtype_float64),
                                 temporary(ctx, &groups.statistics, 1, diopi_dtype_float64)};
        keep_moments(ctx, groups.of(x), groups.dims, kept, eps);
        normalize_backward(ctx, grad_input, PerChannel(grad_scale, groups.channels),
                           PerChannel(grad_bias, groups.channels), required_view(grad_output, "grad_output"), x, scale,
                           kept.mean, kept.scale, groups);
    });
}

}  // namespace impl::portable
