// Layer normalization over the trailing dimensions, with or without the mean (RMS), and the gradients of both.
#include <diopi/diopirt.h>

#include "core/access.h"
#include "core/math.h"
#include "core/rows.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The dimensions that are not normalized, one bit each; `normalized` must be the input's last sizes.
uint32_t leading_dims(const TensorView& input, diopiSize_t normalized) {
    require(normalized.len >= 1 && normalized.len <= input.ndim, "%d normalized dimensions do not fit an input of %d",
            static_cast<int>(normalized.len), input.ndim);
    const int lead = input.ndim - static_cast<int>(normalized.len);
    for (int64_t k = 0; k < normalized.len; ++k) {
        require(normalized.data[k] == input.sizes[lead + k],
                "the normalized shape has size %lld where the input has %lld",
                static_cast<long long>(normalized.data[k]), static_cast<long long>(input.sizes[lead + k]));
    }
    return (1u << lead) - 1u;
}

// One statistic per row; callers may leave it out.
struct PerRow {
    TensorView tensor;
    Space<1> space;

    PerRow(diopiConstTensorHandle_t handle, int64_t rows) : tensor(view(handle)) {
        if (!tensor.defined()) return;
        require(tensor.numel == rows, "a normalization has %lld rows, but %lld statistics",
                static_cast<long long>(rows), static_cast<long long>(tensor.numel));
        require_storable(tensor);
        space = space_of(tensor);
    }

    DIOPI_HD double get(int64_t row) const { return load_as<double>(tensor, space.offset(row)); }
    DIOPI_HD void set(int64_t row, double value) const {
        if (tensor.defined()) store_as(tensor, space.offset(row), value);
    }
};

TensorView parameter(diopiConstTensorHandle_t handle) {
    const TensorView result = view(handle);
    if (result.defined()) require_storable(result);
    return result;
}

// centered: layer normalization; else root mean square.
template <class Access, bool centered>
struct NormTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // out, input, weight, bias
    TensorView out;
    TensorView input;
    TensorView weight;
    TensorView bias;
    PerRow save_mean;
    PerRow save_scale;
    double eps;

    DIOPI_HD void operator()(int64_t row) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const auto count = static_cast<double>(rows.inner.numel);
        const double mean =
            centered ? sum<Access>(rows.inner, base, 1, input, [](double x) { return x; }) / count : 0.0;
        const double squares =
            sum<Access>(rows.inner, base, 1, input, [mean](double x) { return (x - mean) * (x - mean); });
        const double scale = 1.0 / math::sqrt(squares / count + eps);
        save_mean.set(row, mean);
        save_scale.set(row, scale);
        for_each_inner_run(rows.inner, base, [&](const Offsets<4>& at, int64_t length) {
            normalize(at, length, static_cast<C>(mean), static_cast<C>(scale));
        });
    }

    DIOPI_HD void normalize(const Offsets<4>& at, int64_t length, C center, C factor) const {
        const int64_t strides[4] = {rows.inner.inner_stride(0), rows.inner.inner_stride(1), rows.inner.inner_stride(2),
                                    rows.inner.inner_stride(3)};
        for (int64_t k = 0; k < length; ++k) {
            C value = (Access::template load<C>(input, at.at[1] + k * strides[1]) - center) * factor;
            if (weight.defined()) value *= Access::template load<C>(weight, at.at[2] + k * strides[2]);
            if (bias.defined()) value += Access::template load<C>(bias, at.at[3] + k * strides[3]);
            Access::store(out, at.at[0] + k * strides[0], value);
        }
    }
};

template <class Access, bool centered>
struct NormInputGradientTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // grad_input, input, weight, grad_output
    TensorView grad_input;
    TensorView input;
    TensorView weight;
    TensorView grad_output;
    PerRow mean;
    PerRow scale;

    DIOPI_HD void operator()(int64_t row) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const double center = centered ? mean.get(row) : 0.0;
        const double factor = scale.get(row);
        double sum = 0;
        double slope = 0;
        visit(base, center, factor, [&](double gradient, double normalized, int64_t) {
            sum += gradient;
            slope += gradient * normalized;
        });
        const auto count_all = static_cast<double>(rows.inner.numel);
        const double mean_gradient = centered ? sum / count_all : 0.0;
        slope /= count_all;
        visit(base, center, factor, [&](double gradient, double normalized, int64_t target) {
            Access::store(grad_input, target, factor * (gradient - mean_gradient - normalized * slope));
        });
    }

    // Calls f(gradient of the weighted value, normalized value, offset in grad_input).
    template <class F>
    DIOPI_HD void visit(const Offsets<4>& base, double center, double factor, F&& f) const {
        const int64_t strides[4] = {rows.inner.inner_stride(0), rows.inner.inner_stride(1), rows.inner.inner_stride(2),
                                    rows.inner.inner_stride(3)};
        for_each_inner_run(rows.inner, base, [&](const Offsets<4>& at, int64_t count) {
            for (int64_t k = 0; k < count; ++k) {
                const double normalized =
                    (Access::template load<double>(input, at.at[1] + k * strides[1]) - center) * factor;
                double gradient = Access::template load<double>(grad_output, at.at[3] + k * strides[3]);
                if (weight.defined()) gradient *= Access::template load<double>(weight, at.at[2] + k * strides[2]);
                f(gradient, normalized, at.at[0] + k * strides[0]);
            }
        });
    }
};

// Sixteen neighbouring columns at a time, so that each row is read in runs.
template <class Access, bool centered>
struct NormParameterGradientTask {
    static constexpr int kColumns = 16;

    Rows<4> rows;  // input, grad_output, grad_weight, grad_bias
    TensorView input;
    TensorView grad_output;
    TensorView grad_weight;
    TensorView grad_bias;
    PerRow mean;
    PerRow scale;

    DIOPI_HD void operator()(int64_t block) const {
        const int64_t first = block * kColumns;
        const int64_t left = rows.inner.numel - first;
        const int width = static_cast<int>(left < kColumns ? left : kColumns);
        Offsets<4> columns[kColumns];
        double weights[kColumns] = {};
        double biases[kColumns] = {};
        for (int k = 0; k < width; ++k) columns[k] = rows.inner.offsets(first + k);
        for (int64_t row = 0; row < rows.outer.numel; ++row) {
            const Offsets<4> base = rows.outer.offsets(row);
            const double center = centered ? mean.get(row) : 0.0;
            const double factor = scale.get(row);
            for (int k = 0; k < width; ++k) {
                const double gradient = Access::template load<double>(grad_output, base.at[1] + columns[k].at[1]);
                biases[k] += gradient;
                weights[k] +=
                    gradient * (Access::template load<double>(input, base.at[0] + columns[k].at[0]) - center) * factor;
            }
        }
        for (int k = 0; k < width; ++k) {
            if (grad_weight.defined()) store_as(grad_weight, columns[k].at[2], weights[k]);
            if (grad_bias.defined()) store_as(grad_bias, columns[k].at[3], biases[k]);
        }
    }
};

template <bool centered>
void normalize(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
               diopiTensorHandle_t save_scale, diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight,
               diopiConstTensorHandle_t bias, diopiSize_t normalized_shape, double eps) {
    const TensorView operands[4] = {required_view(out, "out"), required_view(input, "input"), parameter(weight),
                                    parameter(bias)};
    require(operands[0].same_sizes(operands[1]), "the output of a normalization has another shape than its input");
    const Rows<4> rows = rows_of(operands, leading_dims(operands[1], normalized_shape));
    const int64_t count = rows.outer.numel;
    const PerRow means(save_mean, count);
    const PerRow scales(save_scale, count);
    dispatch_access({&operands[0], &operands[1], &operands[2], &operands[3]}, [&](auto access) {
        for_each(ctx, count,
                 NormTask<decltype(access), centered>{rows, operands[0], operands[1], operands[2], operands[3], means,
                                                      scales, eps});
    });
}

template <bool centered>
void normalize_backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input, diopiTensorHandle_t grad_weight,
                        diopiTensorHandle_t grad_bias, diopiConstTensorHandle_t grad_output,
                        diopiConstTensorHandle_t input, diopiConstTensorHandle_t weight, diopiConstTensorHandle_t mean,
                        diopiConstTensorHandle_t scale, diopiSize_t normalized_shape) {
    const TensorView x = required_view(input, "input");
    const TensorView gradient = required_view(grad_output, "grad_output");
    require(gradient.same_sizes(x), "grad_output of a normalization has another shape than its input");
    require(scale != nullptr && (!centered || mean != nullptr),
            "the gradient of a normalization needs the statistics that were saved");
    require_storable(gradient);
    const uint32_t dims = leading_dims(x, normalized_shape);
    const TensorView grad_weight_view = parameter(grad_weight);
    const TensorView grad_bias_view = parameter(grad_bias);
    if (grad_input != nullptr) {
        const TensorView operands[4] = {view(grad_input), x, parameter(weight), gradient};
        require(operands[0].same_sizes(x), "grad_input of a normalization has another shape than its input");
        const Rows<4> rows = rows_of(operands, dims);
        const int64_t count = rows.outer.numel;
        dispatch_access({&operands[0], &operands[1], &operands[2], &operands[3]}, [&](auto access) {
            for_each(ctx, count,
                     NormInputGradientTask<decltype(access), centered>{rows, operands[0], x, operands[2], gradient,
                                                                       PerRow(mean, count), PerRow(scale, count)});
        });
    }
    if (grad_weight_view.defined() || grad_bias_view.defined()) {
        const TensorView operands[4] = {x, gradient, grad_weight_view, grad_bias_view};
        const Rows<4> rows = rows_of(operands, dims);
        const int64_t count = rows.outer.numel;
        dispatch_access({&x, &gradient}, [&](auto access) {
            using Task = NormParameterGradientTask<decltype(access), centered>;
            for_each(
                ctx, (rows.inner.numel + Task::kColumns - 1) / Task::kColumns,
                Task{rows, x, gradient, grad_weight_view, grad_bias_view, PerRow(mean, count), PerRow(scale, count)});
        });
    }
}

}  // namespace

diopiError_t diopiLayerNorm(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t save_mean,
                            diopiTensorHandle_t save_invstd, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias,
                            diopiSize_t normalized_shape, double eps) {
    return guarded(
        [&] { normalize<true>(ctx, out, save_mean, save_invstd, input, weight, bias, normalized_shape, eps); });
}

diopiError_t diopiLayerNormBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                    diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                    diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                    diopiConstTensorHandle_t weight, diopiConstTensorHandle_t,
                                    diopiConstTensorHandle_t mean, diopiConstTensorHandle_t rstd,
                                    diopiSize_t normalized_shape) {
    return guarded([&] {
        normalize_backward<true>(ctx, grad_input, grad_weight, grad_bias, grad_output, input, weight, mean, rstd,
                                 normalized_shape);
    });
}

diopiError_t diopiRMSNorm(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiTensorHandle_t inv_rms,
                          diopiConstTensorHandle_t input, diopiSize_t normalized_shape, diopiConstTensorHandle_t weight,
                          diopiConstTensorHandle_t bias, double eps) {
    return guarded([&] { normalize<false>(ctx, out, nullptr, inv_rms, input, weight, bias, normalized_shape, eps); });
}

diopiError_t diopiRMSNormBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                  diopiTensorHandle_t grad_weight, diopiTensorHandle_t grad_bias,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t input,
                                  diopiConstTensorHandle_t weight, diopiConstTensorHandle_t,
                                  diopiConstTensorHandle_t inv_rms, diopiSize_t normalized_shape, double) {
    return guarded([&] {
        normalize_backward<false>(ctx, grad_input, grad_weight, grad_bias, grad_output, input, weight, nullptr, inv_rms,
                                  normalized_shape);
    });
}

}  // namespace impl::portable
