// The distances between the rows of two matrices, batch by batch, and their gradient.
#include <diopi/diopirt.h>

#include "copy/common_dtype.h"
#include "core/view.h"
#include "matrix.h"
#include "reduction/vector_norm.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Calls f with the kind, as a constant where it is a usual one, whose loop has one case alone.
template <class F>
DIOPI_HD inline void with_kind(NormKind kind, F&& f) {
    switch (kind) {
        case NormKind::absolute: return f(Constant<NormKind::absolute>{});
        case NormKind::square: return f(Constant<NormKind::square>{});
        case NormKind::largest: return f(Constant<NormKind::largest>{});
        default: return f(kind);
    }
}

struct Matrices {
    TensorView tensor;
    int64_t rows, columns, row, column;  // sizes and strides

    explicit Matrices(const TensorView& view)
        : tensor(view),
          rows(view.sizes[view.ndim - 2]),
          columns(view.sizes[view.ndim - 1]),
          row(view.strides[view.ndim - 2]),
          column(view.strides[view.ndim - 1]) {}

    // An element of the matrix that begins at `first`.
    template <class Access, class C>
    DIOPI_HD C load(int64_t first, int64_t i, int64_t j) const {
        return Access::template load<C>(tensor, first + i * row + j * column);
    }
};

template <class Access>
struct Distances {
    Space<3> batches;
    Matrices out, input1, input2;
    NormFold fold;

    // A part of one row of a result.
    DIOPI_HD void operator()(int64_t line, int64_t begin, int64_t end) const {
        const int64_t batch = line / out.rows, i = line - batch * out.rows;
        const Offsets<3> at = batches.offsets(batch);
        with_kind(fold.kind, [&](auto kind) {
            const KindOfNormFold<decltype(kind)> known{kind, fold.p};
            for (int64_t j = begin; j < end; ++j) {
                double state = known.start();
                for (int64_t k = 0; k < input1.columns; ++k) {
                    state = known.step(
                        state, input1.load<Access, double>(at[1], i, k) - input2.load<Access, double>(at[2], j, k));
                }
                Access::store(out.tensor, at[0] + i * out.row + j * out.column, known.finish(state, input1.columns));
            }
        });
    }
};

// So many rows and columns of a gradient are summed up together; a GPU's thread has one element.
constexpr int64_t kTile = kRunLength == 1 ? 1 : 32;

template <class Access>
struct DistanceGradients {
    using C = typename Access::Compute;
    Space<5> batches;
    Matrices grad_input, input1, input2, grad_output, distances;
    NormFold fold;

    DIOPI_HD int64_t bands() const { return (grad_input.rows + kTile - 1) / kTile; }
    DIOPI_HD int64_t blocks() const { return (grad_input.columns + kTile - 1) / kTile; }

    DIOPI_HD void operator()(int64_t index) const {
        const int64_t band = index / blocks(), block = index - band * blocks(), batch = band / bands();
        const int64_t row = (band - batch * bands()) * kTile, column = block * kTile;
        const int64_t height = grad_input.rows - row < kTile ? grad_input.rows - row : kTile;
        const int64_t width = grad_input.columns - column < kTile ? grad_input.columns - column : kTile;
        const Offsets<5> at = batches.offsets(batch);
        const int64_t lanes = kTile == 1 ? 1 : (height + 7) / 8 * 8;  // whole vectors
        C sums[kTile][kTile] = {}, values[kTile][kTile] = {};
        for (int64_t i = 0; i < height; ++i) {
            for (int64_t k = 0; k < width; ++k) values[k][i] = input1.load<Access, C>(at[1], row + i, column + k);
        }
        with_kind(fold.kind, [&](auto kind) {
            C grads[kTile] = {}, lengths[kTile] = {};
            for (int64_t j = 0; j < input2.rows; ++j) {
                for (int64_t i = 0; i < height; ++i) {
                    lengths[i] = distances.load<Access, C>(at[4], row + i, j);
                    grads[i] = grad_output.load<Access, C>(at[3], row + i, j);
                }
                if (kind == NormKind::square) {
                    for (int64_t i = 0; i < lanes; ++i) grads[i] = lengths[i] == 0 ? C(0) : grads[i] / lengths[i];
                }
                for (int64_t k = 0; k < width; ++k)
                    add(kind, lanes, grads, lengths, values[k], input2.load<Access, C>(at[2], j, column + k), sums[k]);
            }
        });
        for (int64_t i = 0; i < height; ++i) {
            const int64_t to = at[0] + (row + i) * grad_input.row + column * grad_input.column;
            for (int64_t k = 0; k < width; ++k)
                Access::store(grad_input.tensor, to + k * grad_input.column, sums[k][i]);
        }
    }

    // What a point of input2, `other` in this column, gives to the rows.
    template <class Kind>
    DIOPI_HD void add(Kind kind, int64_t lanes, const C* grads, const C* lengths, const C* values, C other,
                      C* __restrict sums) const {
        for (int64_t i = 0; i < lanes; ++i) {
            const C difference = values[i] - other;
            sums[i] += kind == NormKind::square
                           ? grads[i] * difference
                           : static_cast<C>(grads[i] * norm_slope({kind, fold.p}, difference, lengths[i]));
        }
    }
};

// Calls f(operands, access), which writes the first of them: halves are read as floats, once for many distances.
template <int N, class F>
void with_points(Context ctx, const TensorView (&operands)[N], F&& f) {
    CommonFloat common;
    for (const TensorView& operand : operands) common.add(operand);
    with_dtype(ctx, operands, 1, sum_dtype(common.dtype), Layout::any, [&](const TensorView(&typed)[N]) {
        dispatch<Types<float, double>>(typed[0].dtype,
                                       [&](auto type) { f(typed, TypedAccess<typename decltype(type)::type>{}); });
    });
}

void require_points(const TensorView& input1, const TensorView& input2) {
    require(input1.ndim >= 2 && input2.ndim >= 2 && input1.ndim < kMaxDims && input2.ndim < kMaxDims,
            "cdist takes two batches of matrices");
    require(input1.sizes[input1.ndim - 1] == input2.sizes[input2.ndim - 1], "cdist takes rows of the same length");
}

}  // namespace

// Differences are always taken element by element: right for every compute_mode.
diopiError_t diopiCdist(Context ctx, Tensor out, ConstTensor input1, ConstTensor input2, double p, const int64_t*) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), left = required_view(input1, "input1");
        const TensorView right = required_view(input2, "input2");
        require_points(left, right);
        with_points(ctx, {result, left, right}, [&](const TensorView(&points)[3], auto access) {
            const Distances<decltype(access)> task{batches_of(points), Matrices(points[0]), Matrices(points[1]),
                                                   Matrices(points[2]), norm_fold(p)};
            for_runs(stream_of(ctx), task.batches.numel * task.out.rows, task.out.columns, task);
        });
    });
}

diopiError_t diopiCdistBackward(Context ctx, Tensor grad_input, ConstTensor grad_output, ConstTensor input1,
                                ConstTensor input2, double p, ConstTensor cdist) {
    return guarded([&] {
        const TensorView left = required_view(input1, "input1"), right = required_view(input2, "input2");
        const TensorView gradient = required_view(grad_output, "grad_output");
        const TensorView distances = required_view(cdist, "cdist");
        require_points(left, right);
        require_same_sizes(gradient, distances, "grad_output", "cdist");
        require(gradient.ndim >= 2 && gradient.sizes[gradient.ndim - 1] == right.sizes[right.ndim - 2],
                "cdist has a distance for each row of input2");
        const TensorView result = required_view(grad_input, "grad_input");
        with_points(ctx, {result, left, right, gradient, distances}, [&](const TensorView(&points)[5], auto access) {
            const DistanceGradients<decltype(access)> task{
                batches_of(points),  Matrices(points[0]), Matrices(points[1]), Matrices(points[2]),
                Matrices(points[3]), Matrices(points[4]), norm_fold(p)};
            for_each_index(stream_of(ctx), task.batches.numel * task.bands() * task.blocks(), task);
        });
    });
}

}  // namespace impl::portable
