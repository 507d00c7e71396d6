// Factorizations and triangular systems: plain loops in double, each matrix, or each of its columns, a task of its own.
#include <diopi/diopirt.h>

#include "core/copy.h"
#include "core/host_list.h"
#include "core/math.h"
#include "core/matrix.h"
#include "core/runs.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

constexpr diopiDtype_t kDouble = diopi_dtype_float64;

int64_t rows_of(const TensorView& matrix) { return matrix.sizes[matrix.ndim - 2]; }
int64_t columns_of(const TensorView& matrix) { return matrix.sizes[matrix.ndim - 1]; }
int64_t row_step(const TensorView& matrix) { return matrix.strides[matrix.ndim - 2]; }
int64_t column_step(const TensorView& matrix) { return matrix.strides[matrix.ndim - 1]; }

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

// The matrices of `tensor` in double: row-major, and free to be written.
TensorView working_copy(Context ctx, const TensorView& tensor) {
    const TensorView copy = temporary_like(ctx, tensor, kDouble);
    copy_elements(ctx, copy, tensor);
    return copy;
}

int64_t batch_count(const TensorView& tensor) {
    int64_t count = 1;
    for (int d = 0; d + 2 < tensor.ndim; ++d) count *= tensor.sizes[d];
    return count;
}

// The lower triangle of each matrix becomes L, the rest zero; `info` tells the order of the first minor that is not
// positive, which ends the work on its matrix.
void factor_lower(diopiStreamHandle_t stream, const TensorView& work, int32_t* info) {
    const int64_t n = rows_of(work);
    for_each_index(
        stream, batch_count(work), DIOPI_LAMBDA(int64_t matrix) {
            double* a = work.as<double>() + matrix * n * n;
            info[matrix] = 0;
            for (int64_t j = 0; j < n && info[matrix] == 0; ++j) {
                double* pivot_row = a + j * n;
                double square = pivot_row[j];
                for (int64_t k = 0; k < j; ++k) square -= pivot_row[k] * pivot_row[k];
                if (!(square > 0)) {
                    info[matrix] = static_cast<int32_t>(j + 1);
                    continue;
                }
                pivot_row[j] = math::sqrt(square);
                for (int64_t i = j + 1; i < n; ++i) {
                    double sum = a[i * n + j];
                    for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * pivot_row[k];
                    a[i * n + j] = sum / pivot_row[j];
                }
            }
            for (int64_t i = 0; i < n; ++i) {
                for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
            }
        });
}

// `b` = the x of `triangle` x = b, in double; of the triangle only the lower part is read, or only the upper, and with
// `unit` its diagonal counts as ones. Its batches broadcast to those of b.
void solve_in_place(diopiStreamHandle_t stream, const TensorView& triangle, bool lower, bool unit,
                    const TensorView& b) {
    const Space<2> batches = batches_of({b, triangle});
    const int64_t n = rows_of(b), columns = columns_of(b), step = row_step(b), next = column_step(b);
    const int64_t down = row_step(triangle), across = column_step(triangle);
    for_each_index(
        stream, batches.numel * columns, DIOPI_LAMBDA(int64_t i) {
            const int64_t batch = i / columns;
            const Offsets<2> at = batches.offsets(batch);
            double* x = b.as<double>() + at[0] + (i - batch * columns) * next;
            const double* a = triangle.as<double>() + at[1];
            for (int64_t done = 0; done < n; ++done) {
                const int64_t r = lower ? done : n - 1 - done;
                const int64_t end = lower ? r : n;
                double sum = x[r * step];
                for (int64_t k = lower ? 0 : r + 1; k < end; ++k) sum -= a[r * down + k * across] * x[k * step];
                x[r * step] = unit ? sum : sum / a[r * (down + across)];
            }
        });
}

// out = the sum of `wide`, in double, over the batches that out does not tell apart.
void sum_batches(Context ctx, const TensorView& out, const TensorView& wide) {
    Space<2> kept;
    Space<1> repeated;
    for (int d = 0; d < wide.ndim; ++d) {
        const int at = d - (wide.ndim - out.ndim);
        const int64_t size = at < 0 ? 1 : out.sizes[at];
        if (size == wide.sizes[d]) {
            kept.append(size, {at < 0 ? 0 : out.strides[at], wide.strides[d]});
        } else {
            require(size == 1, "a gradient of size %lld cannot sum up %lld", size, wide.sizes[d]);
            repeated.append(wide.sizes[d], {wide.strides[d]});
        }
    }
    for_each_index(
        stream_of(ctx), kept.numel, DIOPI_LAMBDA(int64_t i) {
            const Offsets<2> at = kept.offsets(i);
            double sum = 0;
            for (int64_t k = 0; k < repeated.numel; ++k) sum += wide.as<double>()[at[1] + repeated.offset(k)];
            store_as(out, at[0], sum);
        });
}

// target -= left right^T within the triangle, of dense matrices in double; target is square.
void subtract_products(diopiStreamHandle_t stream, const TensorView& target, const TensorView& left,
                       const TensorView& right, bool lower, bool unit) {
    const int64_t n = rows_of(target), k = columns_of(left);
    for_each_index(
        stream, target.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t line = i / n, column = i - line * n, matrix = line / n, row = line - matrix * n;
            if (row == column ? unit : (row > column) != lower) return;
            const double* a = left.as<double>() + line * k;
            const double* b = right.as<double>() + (matrix * n + column) * k;
            double sum = 0;
            for (int64_t j = 0; j < k; ++j) sum += a[j] * b[j];
            target.as<double>()[i] -= sum;
        });
}

// What the lower triangle of L^T G says of a symmetric matrix, halved.
void half_symmetric_product(diopiStreamHandle_t stream, const TensorView& out, const TensorView& factor,
                            const TensorView& grad) {
    const int64_t n = rows_of(out);
    for_each_index(
        stream, out.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t line = i / n, column = i - line * n, matrix = line / n, row = line - matrix * n;
            const int64_t high = row > column ? row : column, low = row > column ? column : row;
            const double* l = factor.as<double>() + matrix * n * n;
            const double* g = grad.as<double>() + matrix * n * n;
            double sum = 0;
            for (int64_t k = high; k < n; ++k) sum += l[k * n + high] * g[k * n + low];
            out.as<double>()[i] = sum / 2;
        });
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
        const TensorView source = square_matrices(mat, "mat");
        const TensorView result = square_matrices(out, "out");
        require_same_sizes(result, source, "out", "mat");
        const TensorView work = working_copy(ctx, transposed_if(upper, source));
        const TensorView orders = temporary(ctx, source.sizes, source.ndim - 2, diopi_dtype_int32);
        factor_lower(stream_of(ctx), work, orders.as<int32_t>());
        copy_elements(ctx, transposed_if(upper, result), work);
        copy_elements(ctx, required_view(info, "info"), orders);
        if (checkerror) require_positive(ctx, orders);
    });
}

// With S twice half_symmetric_product(), the gradient is L^-T S L^-1 / 2 (Murray, Differentiation of the Cholesky
// decomposition, 2016).
diopiError_t diopiCholeskyBackward(Context ctx, Tensor grad_mat, ConstTensor grad_output, ConstTensor L, bool upper) {
    return guarded([&] {
        const TensorView result = square_matrices(grad_mat, "grad_mat");
        const TensorView triangle = square_matrices(L, "L");
        const TensorView incoming = square_matrices(grad_output, "grad_output");
        require_same_sizes(result, triangle, "grad_mat", "L");
        require_same_sizes(incoming, triangle, "grad_output", "L");
        const TensorView factor = contiguous_as(ctx, transposed_if(upper, triangle), kDouble);
        const TensorView grad = contiguous_as(ctx, transposed_if(upper, incoming), kDouble);
        const TensorView work = temporary_like(ctx, result, kDouble);
        half_symmetric_product(stream_of(ctx), work, factor, grad);
        for (const TensorView& side : {work, matrix_transposed(work)})
            solve_in_place(stream_of(ctx), matrix_transposed(factor), false, false, side);
        copy_elements(ctx, result, work);
    });
}

diopiError_t diopiTriangularSolve(Context ctx, Tensor out, Tensor cloned_mat, ConstTensor b, ConstTensor mat,
                                  bool upper, bool transpose, bool unitriangular) {
    return guarded([&] {
        const TensorView result = matrices(out, "out");
        const TensorView source = square_matrices(mat, "mat");
        const TensorView right = matrices(b, "b");
        require(rows_of(right) == rows_of(source) && rows_of(result) == rows_of(source),
                "a system of %lld equations does not fit a right side of %lld rows", rows_of(source), rows_of(right));
        const TensorView x = temporary_like(ctx, result, kDouble);
        copy_elements(ctx, x, right);
        const TensorView factor = transposed_if(transpose, contiguous_as(ctx, source, kDouble));
        solve_in_place(stream_of(ctx), factor, upper == transpose, unitriangular, x);
        copy_elements(ctx, result, x);
        copy_elements(ctx, square_matrices(cloned_mat, "cloned_mat"), source);
    });
}

// An incoming gradient that is null counts as zeros.
diopiError_t diopiTriangularSolveBackward(Context ctx, Tensor grad_b, Tensor grad_mat, ConstTensor grad_x,
                                          ConstTensor grad_cloned_mat, ConstTensor x, ConstTensor, ConstTensor mat,
                                          bool upper, bool transpose, bool unitriangular) {
    return guarded([&] {
        const auto given = [&](const TensorView& like, ConstTensor handle) {
            const TensorView copy = temporary_like(ctx, like, kDouble);
            handle == nullptr ? fill_zero(ctx, copy) : copy_elements(ctx, copy, view(handle));
            return copy;
        };
        const TensorView source = square_matrices(mat, "mat");
        const TensorView solution = contiguous_as(ctx, matrices(x, "x"), kDouble);
        require(rows_of(solution) == rows_of(source), "a system of %lld equations does not fit a solution of %lld rows",
                rows_of(source), rows_of(solution));
        const TensorView right = given(solution, grad_x);
        const TensorView factor = transposed_if(!transpose, contiguous_as(ctx, source, kDouble));
        solve_in_place(stream_of(ctx), factor, upper != transpose, unitriangular, right);
        sum_batches(ctx, matrices(grad_b, "grad_b"), right);
        TensorView square = solution;
        square.sizes[square.ndim - 1] = rows_of(solution);
        const TensorView grads = given(recounted(square), grad_cloned_mat);
        subtract_products(stream_of(ctx), grads, transpose ? solution : right, transpose ? right : solution, !upper,
                          unitriangular);
        sum_batches(ctx, square_matrices(grad_mat, "grad_mat"), grads);
    });
}


}  // namespace impl::portable
