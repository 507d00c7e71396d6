// Layer normalization over the trailing dimensions, with or without the mean (RMS), and the gradients of both.
#include <diopi/diopirt.h>

#include "channels.h"
#include "copy/common_dtype.h"
#include "normalization.h"
#include "reduction/reduction_space.h"
#include "space/access.h"
#include "space/rows.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The dimensions that are not normalized: those before the last sizes, which must be the given ones, or before an axis.
struct OuterDims {
    bool by_sizes;
    Sizes last;
    int64_t axis;

    explicit OuterDims(Sizes sizes) : by_sizes(true), last(sizes), axis(-sizes.len) {}
    explicit OuterDims(int64_t begin) : by_sizes(false), last{}, axis(begin) {}

    // One bit each.
    uint32_t of(const TensorView& input) const {
        require(!by_sizes || (last.len >= 1 && last.len <= input.ndim),
                "%d normalized dimensions do not fit an input of %d", static_cast<int>(last.len), input.ndim);
        const int lead = normalized_dim(axis, input.ndim);
        for (int64_t k = 0; k < last.len; ++k) {
            require(last.data[k] == input.sizes[lead + k],
                    "the normalized shape has size %lld where the input has %lld", static_cast<long long>(last.data[k]),
                    static_cast<long long>(input.sizes[lead + k]));
        }
        return (1u << lead) - 1u;
    }
};

TensorView parameter(ConstTensor handle) {
    const TensorView result = view(handle);
    if (result.defined()) require_storable(result);
    return result;
}

// The sums for the parameters, which are columns, of all rows.
template <class Access>
struct ParameterGradients {
    using State = GradientSums;

    Rows<2> space;        // input, grad_output; the columns, and the rows of each
    Space<3> parameters;  // of the columns: grad_weight and grad_bias behind the input
    TensorView input, grad_output, grad_weight, grad_bias;
    bool centered;
    PerRow mean, scale;

    DIOPI_HD State start() const { return {}; }
    DIOPI_HD State join(const State& a, const State& b) const { return a + b; }
    DIOPI_HD void finish(int64_t column, const State& sums) const {
        const Offsets<3> at = parameters.offsets(column);
        if (grad_weight.defined()) store_as(grad_weight, at.at[1], sums.second);
        if (grad_bias.defined()) store_as(grad_bias, at.at[2], sums.first);
    }

    // What an element of a row adds.
    DIOPI_HD State term(const Offsets<2>& at, double center, double factor) const {
        const auto gradient = Access::template load<double>(grad_output, at.at[1]);
        return {gradient, gradient * (Access::template load<double>(input, at.at[0]) - center) * factor};
    }
    DIOPI_HD double center(int64_t row) const { return centered ? mean.get(row) : 0; }
    DIOPI_HD State state(int64_t, const Part<2>& part, const Team& team) const {
        const auto of_row = [&](int64_t k) {
            const int64_t row = part.position(k);
            return term(element_of(part.inner, part.base, k), center(row), scale.get(row));
        };
        return team.reduce(sum_of_run(stripe_of(team, part.inner.numel), of_row), Plus{});
    }

    using ColumnAccess = Access;
    std::array<TensorView, 2> column_operands() const { return {input, grad_output}; }
    // Of statistics that are floats side by side: no branch stands between the loads of one row and those of the next.
    bool by_packs() const { return scale.floats != nullptr && (!centered || mean.floats != nullptr); }
    template <class T>
    using ColumnState = FewGradientSums<T>;
    template <class T, int width>
    DIOPI_HD_INLINED void column_states(int64_t column, const Stripe& mine, int64_t columns,
                                        ColumnState<T>* states) const {
        using Sum = RowSum<T>;
        const float* const centers = centered ? mean.floats : scale.floats;
        sum_packs<T, width>(input, grad_output, column, mine, columns, states, [&](int64_t row) {
            const Sum factor = scale.floats[row], center_or_factor = centers[row];
            const Sum middle = centered ? center_or_factor : Sum(0);
            return [factor, middle](int, Sum value) { return (value - middle) * factor; };
        });
    }
};

// The same on a host: neighbouring columns at a time, so that each row is read in runs.
template <class Access>
struct ParameterGradientTask {
    static constexpr int kColumns = 64;

    ParameterGradients<Access> gradients;

    int64_t blocks() const { return (gradients.space.outer.numel + kColumns - 1) / kColumns; }

    DIOPI_HD void operator()(int64_t block) const {
        const int64_t first = block * kColumns, left = gradients.space.outer.numel - first;
        const int width = static_cast<int>(left < kColumns ? left : kColumns);
        const Space<2>&columns = gradients.space.outer, &rows = gradients.space.inner;
        const bool run = columns.ndim == 1 && columns.inner_stride(0) == 1 && columns.inner_stride(1) == 1;
        double sums[kColumns] = {}, products[kColumns] = {};
        for (int64_t row = 0; row < rows.numel; ++row) {
            const Offsets<2> base = rows.offsets(row);
            const double center = gradients.center(row), factor = gradients.scale.get(row);
            const auto add = [&](int k, const Offsets<2>& at) {
                const GradientSums term = gradients.term(at, center, factor);
                sums[k] += term.first;
                products[k] += term.second;
            };
            if (run && width == kColumns) {
                for (int k = 0; k < kColumns; ++k) add(k, {base.at[0] + first + k, base.at[1] + first + k});
            } else if (run) {
                DIOPI_VECTOR_LOOP
                for (int k = 0; k < width; ++k) add(k, {base.at[0] + first + k, base.at[1] + first + k});
            } else {
                for (int k = 0; k < width; ++k) add(k, element_of(columns, base, first + k));
            }
        }
        for (int k = 0; k < width; ++k) gradients.finish(first + k, {sums[k], products[k]});
    }
};

// Root mean squares are not centered.
enum class Centered : bool { no, yes };

// `mean` and `scale` are where the moments go; one may leave out any.
diopiError_t normalize(Context ctx, Centered centered, Tensor out, Tensor mean, Tensor scale, ConstTensor input,
                       ConstTensor weight, ConstTensor bias, const OuterDims& outer, double eps) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView operands[4] = {required_view(out, "out"), x, parameter(weight), parameter(bias)};
        normalize_groups(ctx, operands, outer.of(x), centered == Centered::yes, {view(mean), view(scale)}, eps);
    });
}

// What a gradient needs; there is a `mean` where elements are centered, and one may ask for any of the results.
struct NormGradients {
    Tensor grad_input, grad_weight, grad_bias;
    ConstTensor grad_output, input, weight, mean, scale;
};

diopiError_t normalize_backward(Context ctx, Centered centering, const NormGradients& call, const OuterDims& outer) {
    return guarded([&] {
        const TensorView x = required_view(call.input, "input");
        const uint32_t dims = outer.of(x);
        const bool centered = centering == Centered::yes;
        const TensorView gradient = required_view(call.grad_output, "grad_output");
        require(gradient.same_sizes(x), "grad_output of a normalization has another shape than its input");
        require(call.scale != nullptr && (!centered || call.mean != nullptr),
                "the gradient of a normalization needs the statistics that were saved");
        require_storable(gradient);
        const TensorView grad_weight = parameter(call.grad_weight), grad_bias = parameter(call.grad_bias);
        const TensorView inputs[2] = {x, gradient};
        const int64_t groups = rows_of(inputs, dims).outer.numel;
        const PerRow mean(call.mean, groups), scale(call.scale, groups);
        if (call.grad_input != nullptr) {
            const TensorView operands[4] = {view(call.grad_input), x, parameter(call.weight), gradient};
            propagate_groups(ctx, operands, dims, centered, mean, scale);
        }
        if (!grad_weight.defined() && !grad_bias.defined()) return;
        with_common_dtype(ctx, inputs, 0, [&](const TensorView(&typed)[2]) {
            const uint32_t columns = ~dims & all_dims(x.ndim);
            const TensorView parameters[3] = {x, grad_weight, grad_bias};
            dispatch_typed(typed, [&](auto access) {
                using Gradients = ParameterGradients<decltype(access)>;
                const Gradients gradients{rows_of(typed, columns),
                                          rows_of(parameters, columns).outer,
                                          typed[0],
                                          typed[1],
                                          grad_weight,
                                          grad_bias,
                                          centered,
                                          mean,
                                          scale};
                if constexpr (Team::kAlone) {
                    const ParameterGradientTask<decltype(access)> task{gradients};
                    for_each(ctx, task.blocks(), task);
                } else if (gradients.by_packs()) {
                    run_reduction(ctx, gradients);
                } else {
                    reduce_by_teams(ctx, gradients, gradients, gradients.space.outer, gradients.space.inner);
                }
            });
        });
    });
}

template <class Access>
struct AddTask {
    using C = typename Access::Compute;

    Space<4> space;  // sum, total, addend, bias
    TensorView sum, total, addend, bias;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<4> at = space.offsets(i);
        C result = Access::template load<C>(total, at.at[1]) + Access::template load<C>(addend, at.at[2]);
        if (bias.defined()) result += Access::template load<C>(bias, at.at[3]);
        Access::store(sum, at.at[0], result);
    }
};

// total += addend + bias
void add(Context ctx, const TensorView& total, const TensorView& addend, const TensorView& bias) {
    const TensorView operands[4] = {total, total, addend, bias};
    with_common_dtype(ctx, operands, 1, [&](const TensorView(&typed)[4]) {
        const TensorView spread[4] = {typed[0], typed[1], typed[2], bias.defined() ? typed[3] : typed[2]};
        const Space<4> space = broadcast_space<4>(total, spread);
        dispatch_typed(typed, [&](auto access) {
            for_each(ctx, space.numel, AddTask<decltype(access)>{space, typed[0], typed[1], typed[2], typed[3]});
        });
    });
}

}  // namespace

diopiError_t diopiLayerNorm(Context ctx, Tensor out, Tensor save_mean, Tensor save_invstd, ConstTensor input,
                            ConstTensor weight, ConstTensor bias, Sizes normalized_shape, double eps) {
    return normalize(ctx, Centered::yes, out, save_mean, save_invstd, input, weight, bias, OuterDims(normalized_shape),
                     eps);
}

diopiError_t diopiLayerNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                    ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor,
                                    ConstTensor mean, ConstTensor rstd, Sizes normalized_shape) {
    return normalize_backward(ctx, Centered::yes,
                              {grad_input, grad_weight, grad_bias, grad_output, input, weight, mean, rstd},
                              OuterDims(normalized_shape));
}

diopiError_t diopiRMSNorm(Context ctx, Tensor out, Tensor inv_rms, ConstTensor input, Sizes normalized_shape,
                          ConstTensor weight, ConstTensor bias, double eps) {
    return normalize(ctx, Centered::no, out, nullptr, inv_rms, input, weight, bias, OuterDims(normalized_shape), eps);
}

diopiError_t diopiRMSNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                  ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor,
                                  ConstTensor inv_rms, Sizes normalized_shape, double) {
    return normalize_backward(ctx, Centered::no,
                              {grad_input, grad_weight, grad_bias, grad_output, input, weight, nullptr, inv_rms},
                              OuterDims(normalized_shape));
}

diopiError_t diopiLayerNormGB(Context ctx, Tensor out, Tensor running_mean, Tensor running_var, ConstTensor input,
                              ConstTensor weight, ConstTensor bias, const double eps, const int64_t begin_norm_axis) {
    return normalize(ctx, Centered::yes, out, running_mean, running_var, input, weight, bias,
                     OuterDims(begin_norm_axis), eps);
}

diopiError_t diopiLayerNormGBBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                      ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor,
                                      ConstTensor running_mean, ConstTensor running_std,
                                      const int64_t begin_norm_axis) {
    return normalize_backward(
        ctx, Centered::yes, {grad_input, grad_weight, grad_bias, grad_output, input, weight, running_mean, running_std},
        OuterDims(begin_norm_axis));
}

diopiError_t diopiRootMeanSquareNormInp(Context ctx, Tensor inoutput, ConstTensor scale, float eps) {
    return normalize(ctx, Centered::no, inoutput, nullptr, nullptr, inoutput, scale, nullptr, OuterDims(-1), eps);
}

diopiError_t diopiFusedAddRootMeanSquareNormInp(Context ctx, Tensor inoutput, Tensor residual, ConstTensor bias,
                                                ConstTensor scale, float eps) {
    return guarded([&] {
        const TensorView total = required_view(residual, "residual");
        add(ctx, total, required_view(inoutput, "inoutput"), parameter(bias));
        passed_on(
            normalize(ctx, Centered::no, inoutput, nullptr, nullptr, residual, scale, nullptr, OuterDims(-1), eps));
    });
}

}  // namespace impl::portable
