// ScaledMaskedSoftmax and its gradient: weights along the last dimension, zero where a mask or the diagonal hides them.
#include <diopi/diopirt.h>

#include "core/team.h"
#include "core/view.h"
#include "math/math.h"
#include "space/access.h"
#include "space/element.h"
#include "space/lines.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class T>
struct MaskedSoftmaxTask {
    using C = ComputeType<T>;

    Lines<3> lines;  // output, input, mask
    TensorView output, input, mask;
    C scale;
    int64_t rows;  // of a matrix whose weights right of the diagonal are zero; 0 where the mask decides

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> at = lines.outer.offsets(i);
        const int64_t diagonal = rows == 0 ? 0 : i % rows;
        const auto seen = [&](int64_t k) {
            return rows != 0 ? k <= diagonal : load_as<double>(mask, at.at[2] + k * lines.strides[2]) == 0;
        };
        const auto score = [&](int64_t k) { return cast<C>(input.as<T>()[at.at[1] + k * lines.strides[1]]) * scale; };
        const auto mine = stripe_of(team, lines.count);
        const auto largest_seen = [&](C best, int64_t k) { return seen(k) ? math::max(best, score(k)) : best; };
        const auto larger = [](C a, C b) { return math::max(a, b); };
        const C largest = team.reduce(fold_of_run(mine, -math::infinity<C>, largest_seen, larger), larger);
        const auto weight = [&](int64_t k, C f) { return seen(k) ? math::exp(score(k) - largest) * f : C(0); };
        const double sum = sum_of_run(mine, [&](int64_t k) { return weight(k, C(1)); });
        const C factor = static_cast<C>(1 / team.reduce(sum, Plus{}));
        each(mine, [&](int64_t k) { output.as<T>()[at.at[0] + k * lines.strides[0]] = cast<T>(weight(k, factor)); });
    }
};

// Hidden weights are zero, and so are their gradients, whatever hid them.
template <class T>
struct MaskedSoftmaxBackwardTask {
    using C = ComputeType<T>;

    Lines<3> lines;  // grad_input, grad_output, output
    TensorView grad_input, grad_output, output;
    C scale;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> at = lines.outer.offsets(i);
        const auto grad = [&](int64_t k) { return cast<C>(grad_output.as<T>()[at.at[1] + k * lines.strides[1]]); };
        const auto weight = [&](int64_t k) { return cast<C>(output.as<T>()[at.at[2] + k * lines.strides[2]]); };
        const auto mine = stripe_of(team, lines.count);
        const double sum = sum_of_run(mine, [&](int64_t k) { return grad(k) * weight(k); });
        const C total = static_cast<C>(team.reduce(sum, Plus{}));
        each(mine, [&](int64_t k) {
            grad_input.as<T>()[at.at[0] + k * lines.strides[0]] = cast<T>(weight(k) * (grad(k) - total) * scale);
        });
    }
};

}  // namespace

diopiError_t diopiScaledMaskedSoftmax(Context ctx, Tensor output, ConstTensor input, ConstTensor mask, double scale,
                                      bool fixed_triu_mask) {
    return guarded([&] {
        const TensorView result = required_view(output, "output"), scores = required_view(input, "input");
        require(result.ndim >= 2, "a masked softmax is over matrices of queries and keys");
        require_dtype(scores, result.dtype);
        const TensorView hidden = fixed_triu_mask ? scores : expanded_to(required_view(mask, "mask"), result);
        require_storable(hidden);
        Lines<3> lines = lines_along({result, scores, hidden}, -1);
        const int64_t rows = fixed_triu_mask ? result.sizes[result.ndim - 2] : 0;
        dispatch<Float>(result.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each_by_teams(
                ctx, lines.outer.numel, team_work(lines, 1),
                MaskedSoftmaxTask<T>{lines, result, scores, hidden, static_cast<ComputeType<T>>(scale), rows});
        });
    });
}

diopiError_t diopiScaledMaskedSoftmaxBackward(Context ctx, Tensor grad_input, ConstTensor grad_output,
                                              ConstTensor output, ConstTensor, double scale, bool) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"),
                                        required_view(grad_output, "grad_output"), required_view(output, "output")};
        for (const TensorView& operand : operands) require_dtype(operand, operands[0].dtype);
        const Lines<3> lines = lines_along(operands, -1);
        dispatch<Float>(operands[0].dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each_by_teams(ctx, lines.outer.numel, team_work(lines, 1),
                              MaskedSoftmaxBackwardTask<T>{lines, operands[0], operands[1], operands[2],
                                                           static_cast<ComputeType<T>>(scale)});
        });
    });
}

}  // namespace impl::portable
