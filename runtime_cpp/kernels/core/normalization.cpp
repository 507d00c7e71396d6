#include "normalization.h"

namespace diopi::kernels {
namespace {

struct KeptMoments {
    PerRow mean;
    PerRow scale;
    PerRow variance;

    KeptMoments(const MomentTensors& kept, int64_t rows)
        : mean(kept.mean, rows), scale(kept.scale, rows), variance(kept.variance, rows) {}

    DIOPI_HD void set(int64_t row, const Moments& found, double factor) const {
        mean.set(row, found.mean);
        scale.set(row, factor);
        variance.set(row, found.variance);
    }
};

template <class Access>
struct MomentsTask {
    Rows<1> rows;
    TensorView input;
    KeptMoments kept;
    double eps;

    DIOPI_HD void operator()(int64_t row) const {
        const Moments found = moments<Access>(rows.inner, rows.outer.offsets(row), 0, input);
        kept.set(row, found, found.scale(eps));
    }
};

// centered: layer normalization; else root mean square.
template <class Access, bool centered>
struct NormTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // out, input, weight, bias
    TensorView out;
    TensorView input;
    TensorView weight;
    TensorView bias;
    KeptMoments kept;
    double eps;

    DIOPI_HD void operator()(int64_t row) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const Moments found = moments<Access>(rows.inner, base, 1, input, centered);
        const double mean = found.mean;
        const double scale = found.scale(eps);
        kept.set(row, found, scale);
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

void require_sizes(const TensorView& result, const TensorView& input) {
    require(result.same_sizes(input), "the result of a normalization has another shape than its input");
}

}  // namespace

void keep_moments(Context ctx, const TensorView& input, uint32_t dims, const MomentTensors& kept, double eps) {
    const TensorView operands[1] = {input};
    dispatch_access({&input}, [&](auto access) {
        const Rows<1> rows = rows_of(operands, dims);
        const int64_t count = rows.outer.numel;
        for_each(ctx, count, MomentsTask<decltype(access)>{rows, input, KeptMoments(kept, count), eps});
    });
}

template <bool centered>
void normalize_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, const MomentTensors& kept,
                      double eps) {
    require_sizes(operands[0], operands[1]);
    const Rows<4> rows = rows_of(operands, dims);
    const int64_t count = rows.outer.numel;
    dispatch_access({&operands[0], &operands[1], &operands[2], &operands[3]}, [&](auto access) {
        for_each(ctx, count,
                 NormTask<decltype(access), centered>{rows, operands[0], operands[1], operands[2], operands[3],
                                                      KeptMoments(kept, count), eps});
    });
}

template <bool centered>
void propagate_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, const PerRow& mean,
                      const PerRow& scale) {
    require_sizes(operands[0], operands[1]);
    const Rows<4> rows = rows_of(operands, dims);
    dispatch_access({&operands[0], &operands[1], &operands[2], &operands[3]}, [&](auto access) {
        for_each(ctx, rows.outer.numel,
                 NormInputGradientTask<decltype(access), centered>{rows, operands[0], operands[1], operands[2],
                                                                   operands[3], mean, scale});
    });
}

template void normalize_groups<true>(Context, const TensorView (&)[4], uint32_t, const MomentTensors&,
                                     double);
template void normalize_groups<false>(Context, const TensorView (&)[4], uint32_t, const MomentTensors&,
                                      double);
template void propagate_groups<true>(Context, const TensorView (&)[4], uint32_t, const PerRow&,
                                     const PerRow&);
template void propagate_groups<false>(Context, const TensorView (&)[4], uint32_t, const PerRow&,
                                      const PerRow&);

}  // namespace diopi::kernels
