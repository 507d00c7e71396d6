#include "normalization.h"

#include "common_dtype.h"
#include "packed_normalization.h"

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
struct KeepReduction : MomentsReduction<Access, Rows<1>> {
    KeptMoments kept;
    double eps;

    DIOPI_HD void finish(int64_t row, const Moments& found) const { kept.set(row, found, found.scale(eps)); }
};

// Calls run(offsets, elements, strides) for each run of group `base` in which this thread has elements, with strides as
// of with_strides(). Those of an operand that is not there do not matter.
template <class Run>
DIOPI_HD inline void for_each_run_of(const Space<4>& inner, const Offsets<4>& base, const Team& team,
                                     const TensorView* const (&operands)[4], Run&& run) {
    int64_t strides[4];
    for (int n = 0; n < 4; ++n) strides[n] = operands[n]->defined() ? inner.inner_stride(n) : 1;
    with_strides(strides, [&](const auto& steps) {
        for_each_inner_run(inner, base, team,
                           [&](const Offsets<4>& at, const auto& mine) { run(at, mine, steps); });
    });
}

template <class Access>
struct NormTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // out, input, weight, bias
    TensorView out;
    TensorView input;
    TensorView weight;
    TensorView bias;
    bool centered;  // layer normalization; else root mean square
    KeptMoments kept;
    double eps;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const Moments found = moments<Access>(rows.inner, base, 1, input, team, centered);
        const double mean = found.mean;
        const double scale = found.scale(eps);
        if (team.rank() == 0) kept.set(row, found, scale);
        for_each_run_of(rows.inner, base, team, {&out, &input, &weight, &bias},
                        [&](const Offsets<4>& at, const auto& mine, const auto& strides) {
                            normalize(at, mine, strides, static_cast<C>(mean), static_cast<C>(scale));
                        });
    }

    template <class Elements, class Strides>
    DIOPI_HD void normalize(const Offsets<4>& at, Elements mine, const Strides& strides, C center, C factor) const {
#pragma GCC ivdep
        for (int64_t k = mine.first; k < mine.end; k += mine.step) {
            C value = (Access::template load<C>(input, at.at[1] + k * strides[1]) - center) * factor;
            if (weight.defined()) value *= Access::template load<C>(weight, at.at[2] + k * strides[2]);
            if (bias.defined()) value += Access::template load<C>(bias, at.at[3] + k * strides[3]);
            Access::store(out, at.at[0] + k * strides[0], value);
        }
    }
};

template <class Access>
struct NormInputGradientTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // grad_input, input, weight, grad_output
    TensorView grad_input;
    TensorView input;
    TensorView weight;
    TensorView grad_output;
    bool centered;
    PerRow mean;
    PerRow scale;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const double center = centered ? mean.get(row) : 0.0;
        const double factor = scale.get(row);
        double sum = 0;
        double slope = 0;
        visit(base, team, [&](const auto& run, const auto& mine) {
            constexpr int lanes = std::decay_t<decltype(run)>::kLanes;
            if (centered) sum += sum_of_run<lanes>(mine, [&](int64_t k) { return run.gradient(k); });
            slope += sum_of_run<lanes>(mine, [&](int64_t k) { return run.gradient(k) * (run.value(k) - center); });
        });
        if (centered) sum = team.reduce(sum, Plus{});
        slope = team.reduce(slope, Plus{});
        const auto count_all = static_cast<double>(rows.inner.numel);
        slope *= factor * factor / count_all;  // by the input
        const double shift = sum / count_all - center * slope;
        visit(base, team, [&](const auto& run, const auto& mine) {
#pragma GCC ivdep
            for (int64_t k = mine.first; k < mine.end; k += mine.step) {
                Access::store(grad_input, run.at.at[0] + k * run.strides[0],
                              factor * (run.gradient(k) - run.value(k) * slope - shift));
            }
        });
    }

    template <class Strides>
    struct Run {
        static constexpr int kLanes = kLanesOf<Strides>;

        const NormInputGradientTask& task;
        const Offsets<4>& at;
        const Strides& strides;

        // of the weighted value
        DIOPI_HD double gradient(int64_t k) const {
            const double value = Access::template load<double>(task.grad_output, at.at[3] + k * strides[3]);
            if (!task.weight.defined()) return value;
            return value * Access::template load<double>(task.weight, at.at[2] + k * strides[2]);
        }
        DIOPI_HD double value(int64_t k) const {
            return Access::template load<double>(task.input, at.at[1] + k * strides[1]);
        }
    };

    // Calls f(run, elements) for each run of a row in which this thread has elements.
    template <class F>
    DIOPI_HD void visit(const Offsets<4>& base, const Team& team, F&& f) const {
        for_each_run_of(rows.inner, base, team, {&grad_input, &input, &weight, &grad_output},
                        [&](const Offsets<4>& at, const auto& mine, const auto& strides) {
                            f(Run<std::decay_t<decltype(strides)>>{*this, at, strides}, mine);
                        });
    }
};

void require_sizes(const TensorView& result, const TensorView& input) {
    require(result.same_sizes(input), "the result of a normalization has another shape than its input");
}

}  // namespace

void keep_moments(Context ctx, const TensorView& input, uint32_t dims, const MomentTensors& kept, double eps) {
    const TensorView operands[1] = {input};
    const Rows<1> rows = rows_of(operands, dims);
    const KeptMoments moments(kept, rows.outer.numel);
    dispatch<Float>(input.dtype, [&](auto type) {
        using Access = TypedAccess<typename decltype(type)::type>;
        run_reduction(ctx, KeepReduction<Access>{{rows, input}, moments, eps});
    });
}

void normalize_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered,
                      const MomentTensors& kept, double eps) {
    require_sizes(operands[0], operands[1]);
    with_common_dtype(ctx, operands, 1, [&](const TensorView (&typed)[4]) {
        const Rows<4> rows = rows_of(typed, dims);
        const int64_t count = rows.outer.numel;
        const KeptMoments moments(kept, count);
        dispatch_typed({&typed[0], &typed[1], &typed[2], &typed[3]}, [&](auto access) {
            if constexpr (kHasPacks<decltype(access)>) {
                using T = typename decltype(access)::Element;
                using Task = PackedNormTask<T, KeptMoments>;
                if (has_packed_rows(rows, typed, Task::kWidth)) {
                    const Task task{rows.outer,       typed[0], typed[1], typed[2], typed[3],
                                    rows.inner.numel, centered, moments,  static_cast<RowSum<T>>(eps)};
                    return for_each_by_teams(ctx, count, packed_work(task.columns, Task::kWidth), task);
                }
            }
            for_each_by_teams(ctx, count, rows.inner.numel,
                              NormTask<decltype(access)>{rows, typed[0], typed[1], typed[2], typed[3], centered,
                                                         moments, eps});
        });
    });
}

void propagate_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered, const PerRow& mean,
                      const PerRow& scale) {
    require_sizes(operands[0], operands[1]);
    with_common_dtype(ctx, operands, 1, [&](const TensorView (&typed)[4]) {
        const Rows<4> rows = rows_of(typed, dims);
        const int64_t count = rows.outer.numel;
        dispatch_typed({&typed[0], &typed[1], &typed[2], &typed[3]}, [&](auto access) {
            if constexpr (kHasPacks<decltype(access)>) {
                using Task = PackedNormGradientTask<typename decltype(access)::Element>;
                if (has_packed_rows(rows, typed, Task::kWidth)) {
                    const Task task{rows.outer,       typed[0], typed[1], typed[2], typed[3],
                                    rows.inner.numel, centered, mean,     scale};
                    return for_each_by_teams(ctx, count, packed_work(task.columns, Task::kWidth), task);
                }
            }
            for_each_by_teams(ctx, count, rows.inner.numel,
                              NormInputGradientTask<decltype(access)>{rows, typed[0], typed[1], typed[2], typed[3],
                                                                      centered, mean, scale});
        });
    });
}

}  // namespace diopi::kernels
