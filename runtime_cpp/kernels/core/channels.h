// What batch normalizations do with one channel: vectors with a value per channel, and loops over a channel's elements.
#ifndef DIOPI_KERNELS_CORE_CHANNELS_H_
#define DIOPI_KERNELS_CORE_CHANNELS_H_

#include "access.h"
#include "rows.h"

namespace diopi::kernels {

constexpr uint32_t kChannelDim = 1u << 1;

// A vector with one value per channel; callers may leave any of them out, as null or as a tensor without elements.
struct PerChannel {
    TensorView tensor;

    PerChannel(ConstTensor handle, int64_t channels) : tensor(view(handle)) {
        if (tensor.defined() && tensor.numel == 0 && channels > 0) tensor = undefined_view();
        if (!tensor.defined()) return;
        require(tensor.ndim == 1 && tensor.sizes[0] == channels,
                "a normalization has %lld channels, but a vector of %lld values", channels, tensor.numel);
        require_storable(tensor);
    }

    DIOPI_HD bool defined() const { return tensor.defined(); }
    DIOPI_HD double get(int64_t channel, double otherwise) const {
        return defined() ? load_as<double>(tensor, channel * tensor.strides[0]) : otherwise;
    }
    DIOPI_HD void set(int64_t channel, double value) const {
        if (defined()) store_as(tensor, channel * tensor.strides[0], value);
    }
    // Moves a running average towards `value`.
    DIOPI_HD void blend(int64_t channel, double value, double momentum) const {
        set(channel, (1.0 - momentum) * get(channel, 0.0) + momentum * value);
    }
};

inline int64_t channels_of(const TensorView& input) {
    require(input.ndim >= 2, "batch normalization needs at least two dimensions, the input has %d", input.ndim);
    return input.sizes[1];
}

// out = (input - center) * scale + shift
struct ChannelScale {
    double center;
    double scale;
    double shift;
};

template <class Access, int N, class TeamOrAlone>
DIOPI_HD inline void scale_channel(const Space<N>& inner, const Offsets<N>& base, const TeamOrAlone& team, int out_at,
                                   const TensorView& out, int input_at, const TensorView& input,
                                   const ChannelScale& by) {
    using C = typename Access::Compute;
    const C center = static_cast<C>(by.center);
    const C slope = static_cast<C>(by.scale);
    const C level = static_cast<C>(by.shift);
    const int64_t strides[2] = {inner.inner_stride(out_at), inner.inner_stride(input_at)};
    with_strides(strides, [&](const auto& steps) {
        for_each_inner_run(inner, base, team, [&](const Offsets<N>& at, const auto& mine) {
#pragma GCC ivdep
            for (int64_t k = mine.first; k < mine.end; k += mine.step) {
                const C value = Access::template load<C>(input, at.at[input_at] + k * steps[1]);
                Access::store(out, at.at[out_at] + k * steps[0], (value - center) * slope + level);
            }
        });
    });
}

struct GradientSums {
    double gradient;             // of grad_output
    double gradient_normalized;  // of grad_output times the normalized input

    DIOPI_HD GradientSums operator+(const GradientSums& other) const {
        return {gradient + other.gradient, gradient_normalized + other.gradient_normalized};
    }
};

// Normalized is (input - center) * scale. A thread gets the sums of its elements only.
template <class Access, int N, class TeamOrAlone>
DIOPI_HD inline GradientSums gradient_sums(const Space<N>& inner, const Offsets<N>& base, const TeamOrAlone& team,
                                           int input_at, const TensorView& input, int gradient_at,
                                           const TensorView& grad_output, double center, double scale) {
    GradientSums sums{0, 0};
    const int64_t strides[2] = {inner.inner_stride(input_at), inner.inner_stride(gradient_at)};
    with_strides(strides, [&](const auto& steps) {
        for_each_inner_run(inner, base, team, [&](const Offsets<N>& at, const auto& mine) {
            const auto gradient = [&](int64_t k) {
                return Access::template load<double>(grad_output, at.at[gradient_at] + k * steps[1]);
            };
            sums.gradient += sum_of_run(mine, gradient);
            sums.gradient_normalized += sum_of_run(mine, [&](int64_t k) {
                const double value = Access::template load<double>(input, at.at[input_at] + k * steps[0]);
                return gradient(k) * (value - center) * scale;
            });
        });
    });
    return sums;
}

// grad_input = (grad_output - means.gradient - normalized * means.gradient_normalized) * factor; operands in this
// order: grad_input, input, grad_output.
template <class Access, class TeamOrAlone>
DIOPI_HD inline void propagate_channel(const Space<3>& inner, const Offsets<3>& base, const TeamOrAlone& team,
                                       const TensorView& grad_input, const TensorView& input,
                                       const TensorView& grad_output, double center, double scale,
                                       const GradientSums& means, double factor) {
    const int64_t strides[3] = {inner.inner_stride(0), inner.inner_stride(1), inner.inner_stride(2)};
    with_strides(strides, [&](const auto& steps) {
        for_each_inner_run(inner, base, team, [&](const Offsets<3>& at, const auto& mine) {
#pragma GCC ivdep
            for (int64_t k = mine.first; k < mine.end; k += mine.step) {
                const double value = Access::template load<double>(input, at.at[1] + k * steps[1]);
                const double normalized = (value - center) * scale;
                const double gradient = Access::template load<double>(grad_output, at.at[2] + k * steps[2]);
                Access::store(grad_input, at.at[0] + k * steps[0],
                              (gradient - means.gradient - normalized * means.gradient_normalized) * factor);
            }
        });
    });
}

}  // namespace diopi::kernels

#endif  // DIOPI_KERNELS_CORE_CHANNELS_H_
