// Layer normalization over the trailing dimensions, with or without the mean (RMS), and the gradients of both.
#include <diopi/diopirt.h>

#include <algorithm>

#include "channels.h"
#include "copy/common_dtype.h"
#include "core/workspace.h"
#include "normalization.h"
#include "space/access.h"
#include "space/packed_rows.h"
#include "space/rows.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// The dimensions that are not normalized: those before the last sizes, which must be the given ones, or before an axis.
struct OuterDims {
    bool by_sizes;
    diopiSize_t last;
    int64_t axis;

    explicit OuterDims(diopiSize_t sizes) : by_sizes(true), last(sizes), axis(-sizes.len) {}
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

// Neighbouring columns at a time, so that each row is read in runs, over some of the rows.
template <class Access>
struct NormParameterGradientTask {
    using Element = typename Access::Element;
    using Sum = std::conditional_t<kHasPacks<Access>, RowSum<Element>, double>;
    // of a chip with teams: threads beside each other read what lies side by side
    static constexpr int kColumns = Team::kAlone ? 64 : kHasPacks<Access> ? 16 / static_cast<int>(Access::kBytes) : 1;

    Rows<4> rows;  // input, grad_output, grad_weight, grad_bias
    TensorView input;
    TensorView grad_output;
    TensorView grad_weight;
    TensorView grad_bias;
    bool centered;
    PerRow mean;
    PerRow scale;
    bool packed;            // a block of columns is one pack of each row
    int64_t blocks;         // of columns
    int64_t length;         // rows of a part
    GradientSums* partial;  // [part, column]; null where there is one part

    struct Columns {
        Sum weights[kColumns] = {};
        Sum biases[kColumns] = {};

        DIOPI_HD void add(int k, Sum value, Sum gradient, Sum center, Sum factor) {
            biases[k] += gradient;
            weights[k] += gradient * (value - center) * factor;
        }
    };

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t part = i / blocks;
        const int64_t first = (i - part * blocks) * kColumns;
        const int64_t end = (part + 1) * length < rows.outer.numel ? (part + 1) * length : rows.outer.numel;
        const int64_t left = rows.inner.numel - first;
        const int width = static_cast<int>(left < kColumns ? left : kColumns);
        const bool run = rows.inner.ndim == 1 && rows.inner.inner_stride(0) == 1 && rows.inner.inner_stride(1) == 1;
        if constexpr (Team::kAlone) {
            if (run && width < kColumns) return few_columns(first, width);
        }
        Columns columns;
        for (int64_t row = part * length; row < end; ++row) {
            const Offsets<4> base = rows.outer.offsets(row);
            const Sum center = centered ? static_cast<Sum>(mean.get(row)) : Sum(0);
            const Sum factor = static_cast<Sum>(scale.get(row));
            const auto add = [&](int k, int64_t input_at, int64_t gradient_at) {
                columns.add(k, Access::template load<Sum>(input, base.at[0] + input_at),
                            Access::template load<Sum>(grad_output, base.at[1] + gradient_at), center, factor);
            };
            if (packed) {
                add_pack(columns, base, first, center, factor);
            } else if (run) {
                DIOPI_UNROLL
                for (int k = 0; k < kColumns; ++k) add(k, first + k, first + k);
            } else {
                each_column(width, [&](int k) {
                    const Offsets<4> column = rows.inner.offsets(first + k);
                    add(k, column.at[0], column.at[1]);
                });
            }
        }
        each_column(width, [&](int k) {
            const GradientSums sums{static_cast<double>(columns.biases[k]), static_cast<double>(columns.weights[k])};
            if (partial != nullptr) {
                partial[part * rows.inner.numel + first + k] = sums;
            } else {
                finish(first + k, sums);
            }
        });
    }

    // The last block of a host's rows, in vectors over sums in memory.
    DIOPI_HD void few_columns(int64_t first, int width) const {
        Columns columns;
        for (int64_t row = 0; row < rows.outer.numel; ++row) {
            const Offsets<4> base = rows.outer.offsets(row);
            const Sum center = centered ? static_cast<Sum>(mean.get(row)) : Sum(0);
            const Sum factor = static_cast<Sum>(scale.get(row));
            DIOPI_VECTOR_LOOP
            for (int k = 0; k < width; ++k) {
                columns.add(k, Access::template load<Sum>(input, base.at[0] + first + k),
                            Access::template load<Sum>(grad_output, base.at[1] + first + k), center, factor);
            }
        }
        for (int k = 0; k < width; ++k)
            finish(first + k, {static_cast<double>(columns.biases[k]), static_cast<double>(columns.weights[k])});
    }

    // The columns' sums stay in registers where their numbers are constants.
    template <class Body>
    DIOPI_HD_INLINED static void each_column(int width, Body&& body) {
        DIOPI_UNROLL
        for (int k = 0; k < kColumns; ++k) {
            if (k < width) body(k);
        }
    }

    DIOPI_HD_INLINED void add_pack(Columns& columns, const Offsets<4>& base, int64_t first, Sum center,
                                   Sum factor) const {
        if constexpr (kHasPacks<Access>) {
            const auto values = load_pack<Element, kColumns>(input.as<Element>() + base.at[0] + first);
            const auto gradients = load_pack<Element, kColumns>(grad_output.as<Element>() + base.at[1] + first);
            DIOPI_UNROLL
            for (int k = 0; k < kColumns; ++k)
                columns.add(k, cast<Sum>(values.at[k]), cast<Sum>(gradients.at[k]), center, factor);
        }
    }

    // Of JoinTask:
    using State = GradientSums;
    DIOPI_HD State start() const { return {}; }
    DIOPI_HD State join(const State& a, const State& b) const { return a + b; }
    DIOPI_HD void finish(int64_t column, const GradientSums& sums) const {
        const Offsets<4> at = rows.inner.offsets(column);
        if (grad_weight.defined()) store_as(grad_weight, at.at[2], sums.second);
        if (grad_bias.defined()) store_as(grad_bias, at.at[3], sums.first);
    }
};

// Parts of the rows: one where a thread takes all of them alone, else so many that few blocks of columns keep the chip
// busy.
int64_t row_parts(int64_t rows, int64_t blocks) {
    constexpr int64_t busy = 1 << 17;  // threads
    constexpr int64_t shortest = 16;   // rows
    if (Team::kAlone || blocks == 0) return 1;
    return std::max<int64_t>(1, std::min(busy / blocks, rows / shortest));
}

// Whether a block of columns is one pack of both operands.
template <class Task>
bool has_packed_columns(const Rows<4>& rows, const TensorView& input, const TensorView& grad_output) {
    if (Team::kAlone || Task::kColumns == 1) return false;
    const TensorView read[4] = {input, grad_output, undefined_view(), undefined_view()};
    return has_packed_rows(rows, read, Task::kColumns);
}

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
            const TensorView operands[4] = {typed[0], typed[1], grad_weight, grad_bias};
            const Rows<4> rows = rows_of(operands, dims);
            dispatch_access({&typed[0], &typed[1]}, [&](auto access) {
                using Task = NormParameterGradientTask<decltype(access)>;
                const int64_t blocks = (rows.inner.numel + Task::kColumns - 1) / Task::kColumns;
                const int64_t parts = row_parts(groups, blocks);
                const int64_t length = (groups + parts - 1) / parts;
                GradientSums* const partial =
                    parts == 1 ? nullptr : workspace_of<GradientSums>(ctx, parts * rows.inner.numel);
                const bool packed = has_packed_columns<Task>(rows, typed[0], typed[1]);
                const Task task{rows, typed[0], typed[1], grad_weight, grad_bias, centered,
                                mean, scale,    packed,   blocks,      length,    partial};
                for_each(ctx, parts * blocks, task);
                if (parts == 1) return;
                for_each_by_teams(ctx, rows.inner.numel, parts, JoinTask<Task>{task, parts, rows.inner.numel, partial});
            });
        });
    });
}

template <class Access>
struct AddTask {
    using C = typename Access::Compute;

    Space<4> space;  // sum, total, addend, bias
    TensorView sum;
    TensorView total;
    TensorView addend;
    TensorView bias;

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
                            ConstTensor weight, ConstTensor bias, diopiSize_t normalized_shape, double eps) {
    return normalize(ctx, Centered::yes, out, save_mean, save_invstd, input, weight, bias, OuterDims(normalized_shape),
                     eps);
}

diopiError_t diopiLayerNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                    ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor,
                                    ConstTensor mean, ConstTensor rstd, diopiSize_t normalized_shape) {
    return normalize_backward(ctx, Centered::yes,
                              {grad_input, grad_weight, grad_bias, grad_output, input, weight, mean, rstd},
                              OuterDims(normalized_shape));
}

diopiError_t diopiRMSNorm(Context ctx, Tensor out, Tensor inv_rms, ConstTensor input, diopiSize_t normalized_shape,
                          ConstTensor weight, ConstTensor bias, double eps) {
    return normalize(ctx, Centered::no, out, nullptr, inv_rms, input, weight, bias, OuterDims(normalized_shape), eps);
}

diopiError_t diopiRMSNormBackward(Context ctx, Tensor grad_input, Tensor grad_weight, Tensor grad_bias,
                                  ConstTensor grad_output, ConstTensor input, ConstTensor weight, ConstTensor,
                                  ConstTensor inv_rms, diopiSize_t normalized_shape, double) {
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
