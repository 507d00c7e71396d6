#include "normalization.h"

#include "copy/common_dtype.h"
#include "packed_normalization.h"

namespace diopi::kernels {
namespace {

struct KeptMoments {
    PerRow mean;
    PerRow scale;

    KeptMoments(const MomentTensors& kept, int64_t rows) : mean(kept.mean, rows), scale(kept.scale, rows) {}

    DIOPI_HD void set(int64_t row, double center, double factor) const {
        mean.set(row, center);
        scale.set(row, factor);
    }
};

template <class Access>
struct KeepReduction : MomentsReduction<Access, Rows<1>> {
    KeptMoments kept;
    double eps;

    DIOPI_HD void finish(int64_t row, const Moments& found) const { kept.set(row, found.mean, found.scale(eps)); }
};

// A parameter along a run, `absent` where it is undefined: an element per element, side by side ...
template <class Access>
struct DenseParameter {
    const TensorView& tensor;
    int64_t first;

    template <class C>
    DIOPI_HD C get(int64_t k) const {
        return Access::template load<C>(tensor, first + k);
    }
};

// ... or one for all ...
struct SameParameter {
    double value;

    template <class C>
    DIOPI_HD C get(int64_t) const {
        return static_cast<C>(value);
    }
};

// ... or any.
template <class Access>
struct StridedParameter {
    const TensorView& tensor;
    int64_t first, stride;
    double absent;

    template <class C>
    DIOPI_HD C get(int64_t k) const {
        return tensor.defined() ? Access::template load<C>(tensor, first + k * stride) : static_cast<C>(absent);
    }
};

// Calls f with a parameter that is dense or the same all along.
template <class Access, class F>
DIOPI_HD_INLINED void with_parameter(const StridedParameter<Access>& parameter, F&& f) {
    if (parameter.tensor.defined() && parameter.stride == 1) {
        f(DenseParameter<Access>{parameter.tensor, parameter.first});
    } else {
        f(SameParameter{parameter.template get<double>(0)});
    }
}

template <class Access>
DIOPI_HD inline bool is_strided(const StridedParameter<Access>& parameter) {
    return parameter.tensor.defined() && parameter.stride != 0 && parameter.stride != 1;
}

// What changes no number that it is multiplied by or added to.
constexpr double kNoFactor = 1.0, kNoAddend = -0.0;

template <class Access>
struct NormTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // out, input, weight, bias
    TensorView out, input, weight, bias;
    bool centered;  // layer normalization; else root mean square
    KeptMoments kept;
    double eps;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const Moments found = moments<Access>(rows.inner, base, 1, input, team, centered);
        const double scale = found.scale(eps);
        if (team.rank() == 0) kept.set(row, found.mean, scale);
        const auto center = static_cast<C>(found.mean), factor = static_cast<C>(scale);
        for_each_inner_run(rows.inner, base, team, [&](const Offsets<4>& at, const auto& mine) {
            const int64_t strides[2] = {rows.inner.inner_stride(0), rows.inner.inner_stride(1)};
            const StridedParameter<Access> weights{weight, at.at[2], rows.inner.inner_stride(2), kNoFactor};
            const StridedParameter<Access> biases{bias, at.at[3], rows.inner.inner_stride(3), kNoAddend};
            const auto normalize = [&](const auto& steps, const auto& factors, const auto& addends) {
                DIOPI_VECTOR_LOOP
                for (int64_t k = mine.first; k < mine.end; k += mine.step) {
                    const C value = (Access::template load<C>(input, at.at[1] + k * steps[1]) - center) * factor;
                    Access::store(out, at.at[0] + k * steps[0],
                                  value * factors.template get<C>(k) + addends.template get<C>(k));
                }
            };
            if (!Team::kAlone || strides[0] != 1 || strides[1] != 1 || is_strided(weights) || is_strided(biases))
                return normalize(strides, weights, biases);
            with_parameter(weights, [&](const auto& factors) {
                with_parameter(biases, [&](const auto& addends) { normalize(UnitStrides{}, factors, addends); });
            });
        });
    }
};

template <class Access>
struct NormInputGradientTask {
    using C = typename Access::Compute;

    Rows<4> rows;  // grad_input, input, weight, grad_output
    TensorView grad_input, input, weight, grad_output;
    bool centered;
    PerRow mean;
    PerRow scale;

    DIOPI_HD void operator()(int64_t row, const Team& team = {}) const {
        const Offsets<4> base = rows.outer.offsets(row);
        const auto center = static_cast<C>(centered ? mean.get(row) : 0.0);
        const double scaled = scale.get(row);
        double sum = 0;
        double product = 0;
        visit(base, team, [&](const auto& run, const auto& mine) {
            constexpr int lanes = std::decay_t<decltype(run)>::kLanes;
            if (centered) sum += sum_of_run<lanes>(mine, [&](int64_t k) { return run.gradient(k); });
            product += sum_of_run<lanes>(mine, [&](int64_t k) { return run.gradient(k) * (run.value(k) - center); });
        });
        if (centered) sum = team.reduce(sum, Plus{});
        product = team.reduce(product, Plus{});
        const auto count_all = static_cast<double>(rows.inner.numel);
        const auto slope = static_cast<C>(product * scaled * scaled / count_all);  // by the input
        const auto shift = static_cast<C>(sum / count_all), factor = static_cast<C>(scaled);
        visit(base, team, [&](const auto& run, const auto& mine) {
            DIOPI_VECTOR_LOOP
            for (int64_t k = mine.first; k < mine.end; k += mine.step) {
                Access::store(grad_input, run.at.at[0] + k * run.strides[0],
                              factor * (run.gradient(k) - (run.value(k) - center) * slope - shift));
            }
        });
    }

    template <class Strides, class Parameter>
    struct Run {
        static constexpr int kLanes = kLanesOf<Strides>;

        const NormInputGradientTask& task;
        const Offsets<4>& at;
        const Strides& strides;
        const Parameter& weights;

        // of the weighted value
        DIOPI_HD C gradient(int64_t k) const {
            return Access::template load<C>(task.grad_output, at.at[3] + k * strides[3]) * weights.template get<C>(k);
        }
        DIOPI_HD C value(int64_t k) const { return Access::template load<C>(task.input, at.at[1] + k * strides[1]); }
    };

    // Calls f(run, elements) for each run of a row in which this thread has elements.
    template <class F>
    DIOPI_HD void visit(const Offsets<4>& base, const Team& team, F&& f) const {
        int64_t strides[4];
        for (int n = 0; n < 4; ++n) strides[n] = rows.inner.inner_stride(n);
        for_each_inner_run(rows.inner, base, team, [&](const Offsets<4>& at, const auto& mine) {
            const StridedParameter<Access> weights{weight, at.at[2], strides[2], kNoFactor};
            const auto run = [&](const auto& steps, const auto& parameter) {
                f(Run<std::decay_t<decltype(steps)>, std::decay_t<decltype(parameter)>>{*this, at, steps, parameter},
                  mine);
            };
            if (!Team::kAlone || strides[0] != 1 || strides[1] != 1 || strides[3] != 1 || is_strided(weights))
                return run(strides, weights);
            with_parameter(weights, [&](const auto& parameter) { run(UnitStrides{}, parameter); });
        });
    }
};

// Runs the task over the rows if they are whole packs.
template <class Task, class... Settings>
bool run_packed_rows(Context ctx, const Rows<4>& rows, const TensorView (&operands)[4], const Settings&... settings) {
    if (!has_packed_rows(rows, operands, Task::kWidth)) return false;
    const int64_t columns = rows.inner.numel;
    const Task task{rows.outer, operands[0], operands[1], operands[2], operands[3], columns, settings...};
    for_each_by_teams(ctx, rows.outer.numel, packed_work(columns, Task::kWidth), task);
    return true;
}

void require_sizes(const TensorView& result, const TensorView& input) {
    require(result.same_sizes(input), "the result of a normalization has another shape than its input");
}

}  // namespace

void keep_moments(Context ctx, const TensorView& input, uint32_t dims, const MomentTensors& kept, double eps) {
    with_common_dtype(ctx, {input}, 0, [&](const TensorView(&read)[1]) {
        const Rows<1> rows = rows_of(read, dims);
        const KeptMoments moments(kept, rows.outer.numel);
        const KeepReduction<TypedAccess<float>> joining{{rows, read[0]}, moments, eps};
        dispatch_typed(read, [&](auto access) {
            run_reduction(ctx, KeepReduction<decltype(access)>{{rows, read[0]}, moments, eps}, joining);
        });
    });
}

void normalize_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered,
                      const MomentTensors& kept, double eps) {
    require_sizes(operands[0], operands[1]);
    with_common_dtype(ctx, operands, 1, [&](const TensorView(&typed)[4]) {
        const Rows<4> rows = rows_of(typed, dims);
        const int64_t count = rows.outer.numel;
        const KeptMoments moments(kept, count);
        const auto packed = [&](auto type) {
            using T = typename decltype(type)::type;
            return run_packed_rows<PackedNormTask<T, KeptMoments>>(ctx, rows, typed, centered, moments,
                                                                   static_cast<RowSum<T>>(eps));
        };
        if (dispatch_packs(typed, packed)) return;
        dispatch_typed(typed, [&](auto access) {
            for_each_by_teams(
                ctx, count, rows.inner.numel,
                NormTask<decltype(access)>{rows, typed[0], typed[1], typed[2], typed[3], centered, moments, eps});
        });
    });
}

void propagate_groups(Context ctx, const TensorView (&operands)[4], uint32_t dims, bool centered, const PerRow& mean,
                      const PerRow& scale) {
    require_sizes(operands[0], operands[1]);
    with_common_dtype(ctx, operands, 1, [&](const TensorView(&typed)[4]) {
        const Rows<4> rows = rows_of(typed, dims);
        const int64_t count = rows.outer.numel;
        const auto packed = [&](auto type) {
            using Task = PackedNormGradientTask<typename decltype(type)::type>;
            return run_packed_rows<Task>(ctx, rows, typed, centered, mean, scale);
        };
        if (dispatch_packs(typed, packed)) return;
        dispatch_typed(typed, [&](auto access) {
            for_each_by_teams(ctx, count, rows.inner.numel,
                              NormInputGradientTask<decltype(access)>{rows, typed[0], typed[1], typed[2], typed[3],
                                                                      centered, mean, scale});
        });
    });
}

}  // namespace diopi::kernels
