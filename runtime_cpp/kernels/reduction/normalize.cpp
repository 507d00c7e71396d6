// Division by a vector norm, and the gradients of norms.
#include "vector_norm.h"

#include <diopi/diopirt.h>

#include "core/scalar.h"
#include "core/team.h"
#include "core/view.h"
#include "math/math.h"
#include "space/rows.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The vectors of `input` whose norms are taken, one per position of the outer dimensions.
template <int N>
struct Vectors {
    NormFold fold;
    Rows<N> rows;  // what is written, input, ...
    TensorView out;
    TensorView input;

    // Calls f(offsets, value) for each element of a vector that falls to this thread of a team.
    template <class F>
    DIOPI_HD void visit(const Offsets<N>& base, const Team& team, F&& f) const {
        for (int64_t k = team.rank(); k < rows.inner.numel; k += team.size()) {
            Offsets<N> at = rows.inner.offsets(k);
            for (int n = 0; n < N; ++n) at.at[n] += base.at[n];
            f(at, load_as<double>(input, at.at[1]));
        }
    }

    DIOPI_HD double norm(const Offsets<N>& base, const Team& team) const {
        double state = fold.start();
        visit(base, team, [&](const Offsets<N>&, double value) { state = fold.step(state, value); });
        state = team.reduce(state, [&](double a, double b) { return fold.join(a, b); });
        return fold.finish(state, rows.inner.numel);
    }

    // How many elements share the derivative of the norm.
    DIOPI_HD double ties(const Offsets<N>& base, const Team& team, double norm) const {
        if (fold.kind != NormKind::largest && fold.kind != NormKind::smallest) return 1.0;
        double count = 0;
        visit(base, team, [&](const Offsets<N>&, double value) {
            if (math::abs(value) == norm || math::isnan(value)) count += 1.0;
        });
        return team.reduce(count, Plus{});
    }
};

struct NormalizeTask {
    Vectors<2> vectors;
    double eps;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<2> base = vectors.rows.outer.offsets(i);
        const double divisor = math::max(vectors.norm(base, team), eps);
        vectors.visit(base, team,
                      [&](const Offsets<2>& at, double value) { store_as(vectors.out, at.at[0], value / divisor); });
    }
};

// A norm below eps is a constant divisor.
struct NormalizeBackwardTask {
    Vectors<3> vectors;  // grad_input, input, grad_output
    TensorView grad_output;
    double eps;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> base = vectors.rows.outer.offsets(i);
        const double norm = vectors.norm(base, team);
        const double divisor = math::max(norm, eps);
        double along = 0;
        vectors.visit(base, team, [&](const Offsets<3>& at, double value) {
            along += load_as<double>(grad_output, at.at[2]) * value;
        });
        along = team.reduce(along, Plus{});
        const double of_norm = norm < eps ? 0.0 : -along / (divisor * divisor) / vectors.ties(base, team, norm);
        vectors.visit(base, team, [&](const Offsets<3>& at, double value) {
            const double slope = of_norm == 0.0 ? 0.0 : of_norm * norm_slope(vectors.fold, value, norm);
            store_as(vectors.out, at.at[0], load_as<double>(grad_output, at.at[2]) / divisor + slope);
        });
    }
};

// The norm is taken anew: one that was kept as a half has lost the digits that its powers need.
struct NormBackwardTask {
    Vectors<3> vectors;  // grad_input, input, grad_output
    TensorView grad_output;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        const Offsets<3> base = vectors.rows.outer.offsets(i);
        const double norm = vectors.norm(base, team);
        const double gradient = load_as<double>(grad_output, base.at[2]) / vectors.ties(base, team, norm);
        vectors.visit(base, team, [&](const Offsets<3>& at, double value) {
            store_as(vectors.out, at.at[0], gradient * norm_slope(vectors.fold, value, norm));
        });
    }
};

template <int N>
Vectors<N> vectors_of(const TensorView (&operands)[N], double p, DimSet dims) {
    for (const TensorView& operand : operands) require_storable(operand);
    require_same_sizes(operands[0], operands[1], "out", "input");
    return {norm_fold(p), rows_of(operands, ~dims), operands[0], operands[1]};
}

template <int N, class Task>
void for_each_vector(Context ctx, const Vectors<N>& vectors, const Task& task) {
    for_each_by_teams(ctx, vectors.rows.outer.numel, vectors.rows.inner.numel, task);
}

DimSet along(int64_t axis, const TensorView& input) { return dim_set(&axis, input.ndim); }

// The result of a reduction over `dims` of `ndim` dimensions, with size one where it leaves them out.
TensorView with_reduced(TensorView result, int ndim, DimSet dims) {
    if (result.ndim == ndim) return result;
    for (int d = 0; d < ndim; ++d) {
        if ((dims >> d & 1u) != 0) result = with_dim(result, d, 1, 0);
    }
    require(result.ndim == ndim, "the gradient of a norm has %d dimensions, not %d", result.ndim, ndim);
    return result;
}

}  // namespace

diopiError_t diopiNormalize(Context ctx, Tensor output, ConstTensor input, const float p, const int64_t axis,
                            const double eps) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(output, "output"), required_view(input, "input")};
        const auto vectors = vectors_of(operands, p, along(axis, operands[1]));
        for_each_vector(ctx, vectors, NormalizeTask{vectors, eps});
    });
}

diopiError_t diopiNormalizeBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input,
                                    const float p, const int64_t axis, const double eps) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"), required_view(input, "input"),
                                        required_view(grad_output, "grad_output")};
        const auto vectors = vectors_of(operands, p, along(axis, operands[1]));
        for_each_vector(ctx, vectors, NormalizeBackwardTask{vectors, operands[2], eps});
    });
}

diopiError_t diopiNormBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor self, ConstTensor,
                               Sizes dim, const diopiScalar_t* p) {
    return guarded([&] {
        const TensorView input = required_view(self, "self");
        const DimSet dims = dim_set(dim, input.ndim);
        const TensorView operands[3] = {required_view(grad_input, "grad_input"), input,
                                        with_reduced(required_view(grad_output, "grad_output"), input.ndim, dims)};
        const auto vectors = vectors_of(operands, scalar_or<double>(p, 2.0), dims);
        for_each_vector(ctx, vectors, NormBackwardTask{vectors, operands[2]});
    });
}

}  // namespace impl::portable
