// Cholesky factors and triangular systems, in double. Working copies are row-major: the solver sees them transposed.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/host_list.h"
#include "core/team.h"
#include "core/view.h"
#include "matrix.h"
#include "reduction/reductions.h"
#include "solver.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

constexpr diopiDtype_t kDouble = diopi_dtype_float64;

int64_t rows_of(const TensorView& matrix) { return matrix.sizes[matrix.ndim - 2]; }
int64_t columns_of(const TensorView& matrix) { return matrix.sizes[matrix.ndim - 1]; }

TensorView matrices(ConstTensor handle, const char* name) {
    const TensorView tensor = required_view(handle, name);
    require(tensor.ndim >= 2, "'%s' has %d dimensions, expected matrices", name, tensor.ndim);
    if (!is_float_dtype(tensor.dtype)) fail_dtype(tensor.dtype);
    return tensor;
}

TensorView square_matrices(ConstTensor handle, const char* name) {
    const TensorView tensor = matrices(handle, name);
    require(rows_of(tensor) == columns_of(tensor), "'%s' has matrices of %lld by %lld, expected square ones", name,
            rows_of(tensor), columns_of(tensor));
    return tensor;
}

TensorView transposed_if(bool wanted, const TensorView& matrix) { return wanted ? matrix_transposed(matrix) : matrix; }

// What `source` broadcasts to in double, free to be written; zeros where there is none.
TensorView working_copy(Context ctx, const TensorView& shape, const TensorView& source) {
    const TensorView copy = temporary_like(ctx, shape, kDouble);
    source.defined() ? copy_elements(ctx, copy, source) : fill_zero(ctx, copy);
    return copy;
}

int64_t batch_count(const TensorView& tensor) {
    int64_t count = 1;
    for (int d = 0; d + 2 < tensor.ndim; ++d) count *= tensor.sizes[d];
    return count;
}

// The shape of square matrices with as many rows as those of `x`, a matrix for each.
TensorView square_like(TensorView x) {
    x.sizes[x.ndim - 1] = rows_of(x);
    return recounted(x);
}

// b = the x of op(mat) x = b, or of x op(mat) = b, of working copies; `mat` has the batches of b.
void solve_in_place(Context ctx, const Triangle& triangle, const TensorView& mat, const TensorView& b) {
    if (b.numel == 0) return;
    const Triangle seen{!triangle.left, !triangle.upper, triangle.is_transposed, triangle.unit};
    diopi::kernels::trsm(stream_of(ctx), seen, columns_of(b), rows_of(b), mat.as<double>(), b.as<double>(),
                         batch_count(b), [&](int64_t bytes) { return workspace(ctx, bytes); });
}

// Zeros stand below the diagonal afterwards.
void keep_upper(Context ctx, const TensorView& work) {
    const int64_t n = rows_of(work);
    for_each(
        ctx, work.numel, DIOPI_LAMBDA(int64_t i) {
            if (i / n % n > i % n) work.as<double>()[i] = 0;
        });
}

// The order of the first minor that is not positive. Some libraries go on where it is NaN.
struct FirstFailure {
    const double* factors;
    int64_t n;
    int32_t* info;

    DIOPI_HD void operator()(int64_t matrix, const Team& team = Team()) const {
        int64_t first = info[matrix] > 0 ? info[matrix] : n + 1;
        for (int64_t j = team.rank(); j < n; j += team.size()) {
            if (!(factors[(matrix * n + j) * n + j] > 0) && j + 1 < first) first = j + 1;
        }
        first = team.reduce(first, [](int64_t x, int64_t y) { return x < y ? x : y; });
        info[matrix] = first > n ? 0 : static_cast<int32_t>(first);
    }
};

// The upper triangle of each matrix becomes the transpose of its Cholesky factor, the rest zero.
void factor_upper(Context ctx, const TensorView& work, const TensorView& orders) {
    const int64_t n = rows_of(work), batch = orders.numel;
    fill_zero(ctx, orders);
    if (work.numel == 0) return;
    diopi::kernels::potrf(stream_of(ctx), n, work.as<double>(), orders.as<int32_t>(), batch,
                          [&](int64_t bytes) { return workspace(ctx, bytes); });
    for_each_by_teams(ctx, batch, n, FirstFailure{work.as<double>(), n, orders.as<int32_t>()});
    keep_upper(ctx, work);
}

// target -= left right^T within the triangle, of working copies; target is square.
void subtract_products(Context ctx, const TensorView& target, const TensorView& left, const TensorView& right,
                       bool upper, bool unit) {
    const TensorView products = temporary_like(ctx, target, kDouble);
    multiply(ctx, products, left, matrix_transposed(right), 1, 0);
    const int64_t n = rows_of(target);
    for_each(
        ctx, target.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t row = i / n % n, column = i % n;
            if (row == column ? unit : (row < column) != upper) return;
            target.as<double>()[i] -= products.as<double>()[i];
        });
}

// What the lower triangle of L^T G says of a symmetric matrix, halved; of working copies of L^T and G^T.
TensorView half_symmetric_product(Context ctx, const TensorView& factor, const TensorView& grad) {
    keep_upper(ctx, factor);
    keep_upper(ctx, grad);
    const TensorView product = temporary_like(ctx, factor, kDouble), out = temporary_like(ctx, factor, kDouble);
    multiply(ctx, product, factor, matrix_transposed(grad), 0.5, 0);
    const int64_t n = rows_of(out);
    for_each(
        ctx, out.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t row = i / n % n, column = i % n, mirrored = i + (column - row) * (n - 1);
            out.as<double>()[i] = product.as<double>()[row < column ? mirrored : i];
        });
    return out;
}

void require_positive(Context ctx, const TensorView& info) {
    int64_t matrix = 0;
    for (const int64_t order : read_back(ctx, info)) {
        require(order == 0, "matrix %lld is not positive definite: its leading minor of order %lld is not positive",
                matrix, order);
        ++matrix;
    }
}

}  // namespace

diopiError_t diopiCholesky(Context ctx, Tensor out, Tensor info, ConstTensor mat, bool upper, bool checkerror) {
    return guarded([&] {
        const TensorView source = square_matrices(mat, "mat"), result = square_matrices(out, "out");
        require_same_sizes(result, source, "out", "mat");
        const TensorView work = working_copy(ctx, source, transposed_if(!upper, source));
        const TensorView orders = temporary(ctx, source.sizes, source.ndim - 2, diopi_dtype_int32);
        factor_upper(ctx, work, orders);
        copy_elements(ctx, transposed_if(!upper, result), work);
        copy_elements(ctx, required_view(info, "info"), orders);
        if (checkerror) require_positive(ctx, orders);
    });
}

// With S twice half_symmetric_product(), the gradient is L^-T S L^-1 / 2 (Murray, Differentiation of the Cholesky
// decomposition, 2016).
diopiError_t diopiCholeskyBackward(Context ctx, Tensor grad_mat, ConstTensor grad_output, ConstTensor L, bool upper) {
    return guarded([&] {
        const TensorView result = square_matrices(grad_mat, "grad_mat"), triangle = square_matrices(L, "L");
        const TensorView incoming = square_matrices(grad_output, "grad_output");
        require_same_sizes(result, triangle, "grad_mat", "L");
        require_same_sizes(incoming, triangle, "grad_output", "L");
        const TensorView factor = working_copy(ctx, triangle, transposed_if(!upper, triangle));
        const TensorView grad = working_copy(ctx, incoming, transposed_if(!upper, incoming));
        const TensorView work = half_symmetric_product(ctx, factor, grad);
        solve_in_place(ctx, Triangle{true, true, false, false}, factor, work);
        solve_in_place(ctx, Triangle{false, true, true, false}, factor, work);
        copy_elements(ctx, result, work);
    });
}

diopiError_t diopiTriangularSolve(Context ctx, Tensor out, Tensor cloned_mat, ConstTensor b, ConstTensor mat,
                                  bool upper, bool transpose, bool unitriangular) {
    return guarded([&] {
        const TensorView result = matrices(out, "out"), source = square_matrices(mat, "mat");
        const TensorView right = matrices(b, "b");
        require(rows_of(right) == rows_of(source) && rows_of(result) == rows_of(source),
                "a system of %lld equations does not fit a right side of %lld rows", rows_of(source), rows_of(right));
        const TensorView x = working_copy(ctx, result, right), factor = working_copy(ctx, square_like(result), source);
        solve_in_place(ctx, Triangle{true, upper, transpose, unitriangular}, factor, x);
        copy_elements(ctx, result, x);
        copy_elements(ctx, square_matrices(cloned_mat, "cloned_mat"), source);
    });
}

// An incoming gradient that is null counts as zeros.
diopiError_t diopiTriangularSolveBackward(Context ctx, Tensor grad_b, Tensor grad_mat, ConstTensor grad_x,
                                          ConstTensor grad_cloned_mat, ConstTensor x, ConstTensor, ConstTensor mat,
                                          bool upper, bool transpose, bool unitriangular) {
    return guarded([&] {
        const TensorView source = square_matrices(mat, "mat"), solution = contiguous_as(ctx, matrices(x, "x"), kDouble);
        require(rows_of(solution) == rows_of(source), "a system of %lld equations does not fit a solution of %lld rows",
                rows_of(source), rows_of(solution));
        const TensorView right = working_copy(ctx, solution, view(grad_x));
        const TensorView factor = working_copy(ctx, square_like(solution), source);
        solve_in_place(ctx, Triangle{true, upper, !transpose, unitriangular}, factor, right);
        sum_where_broadcast(ctx, matrices(grad_b, "grad_b"), right);
        const TensorView grads = working_copy(ctx, square_like(solution), view(grad_cloned_mat));
        subtract_products(ctx, grads, transpose ? solution : right, transpose ? right : solution, upper, unitriangular);
        sum_where_broadcast(ctx, square_matrices(grad_mat, "grad_mat"), grads);
    });
}

}  // namespace impl::portable
