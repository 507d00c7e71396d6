// The QR factorization by Householder's reflections, in double, with the signs of LAPACK.
#include <diopi/diopirt.h>

#include <algorithm>
#include <cstring>

#include "core/copy.h"
#include "core/math.h"
#include "core/runs.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// Matrices of `rows` by `columns`, each stored column by column, and their reflections I - factor v v^T: v has a one at
// its own row, zeros above, and below what stands in the matrix.
struct Reflections {
    double* columns_of_matrices;
    double* factors;
    int64_t batch, rows, columns, count;

    DIOPI_HD double* column(int64_t matrix, int64_t c) const {
        return columns_of_matrices + (matrix * columns + c) * rows;
    }
    DIOPI_HD void reflect(int64_t matrix, int64_t r, double* x) const {
        const double* v = column(matrix, r);
        double sum = x[r];
        for (int64_t i = r + 1; i < rows; ++i) sum += v[i] * x[i];
        sum *= factors[matrix * count + r];
        x[r] -= sum;
        for (int64_t i = r + 1; i < rows; ++i) x[i] -= sum * v[i];
    }
    // Makes column r of the matrix into a reflection that turns it into a multiple of a unit vector.
    DIOPI_HD void make(int64_t matrix, int64_t r) const {
        double* x = column(matrix, r);
        double& factor = factors[matrix * count + r];
        factor = 0;
        double largest = 0;  // squares of what is divided by it do not overflow
        for (int64_t i = r + 1; i < rows; ++i) largest = math::abs(x[i]) <= largest ? largest : math::abs(x[i]);
        if (largest == 0) return;  // a unit vector's multiple already
        largest = math::abs(x[r]) <= largest ? largest : math::abs(x[r]);
        double squares = 0;
        for (int64_t i = r; i < rows; ++i) squares += (x[i] / largest) * (x[i] / largest);
        const double length = largest * math::sqrt(squares);
        const double target = x[r] >= 0 ? -length : length;
        factor = (target - x[r]) / target;
        for (int64_t i = r + 1; i < rows; ++i) x[i] /= x[r] - target;
        x[r] = target;
    }
};

Reflections factor(Context ctx, const TensorView& matrices) {
    const TensorView work = temporary_like(ctx, matrix_transposed(matrices), diopi_dtype_float64);
    copy_elements(ctx, work, matrix_transposed(matrices));
    Reflections result{work.as<double>(), nullptr, 1, work.sizes[work.ndim - 1], work.sizes[work.ndim - 2], 0};
    for (int d = 0; d + 2 < work.ndim; ++d) result.batch *= work.sizes[d];
    result.count = std::min(result.rows, result.columns);
    result.factors = workspace_of<double>(ctx, result.batch * result.count);
    for_each(
        ctx, result.batch, DIOPI_LAMBDA(int64_t matrix) {
            for (int64_t r = 0; r < result.count; ++r) {
                result.make(matrix, r);
                for (int64_t c = r + 1; c < result.columns; ++c) result.reflect(matrix, r, result.column(matrix, c));
            }
        });
    return result;
}

// The first columns of the product of all reflections, as many as `out` has.
void write_q(Context ctx, const TensorView& out, const Reflections& reflections) {
    const TensorView target = temporary_like(ctx, matrix_transposed(out), diopi_dtype_float64);
    const int64_t rows = reflections.rows, columns = out.sizes[out.ndim - 1];
    for_each(
        ctx, reflections.batch * columns, DIOPI_LAMBDA(int64_t line) {
            double* x = target.as<double>() + line * rows;
            const int64_t matrix = line / columns;
            for (int64_t i = 0; i < rows; ++i) x[i] = i == line - matrix * columns ? 1 : 0;
            for (int64_t r = reflections.count - 1; r >= 0; --r) reflections.reflect(matrix, r, x);
        });
    copy_elements(ctx, matrix_transposed(out), target);
}

void write_r(Context ctx, const TensorView& out, const Reflections& reflections) {
    const TensorView target = temporary_like(ctx, matrix_transposed(out), diopi_dtype_float64);
    const int64_t rows = out.sizes[out.ndim - 2], columns = reflections.columns;
    for_each(
        ctx, target.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t line = i / rows, row = i - line * rows, matrix = line / columns, c = line - matrix * columns;
            target.as<double>()[i] = row <= c ? reflections.column(matrix, c)[row] : 0;
        });
    copy_elements(ctx, matrix_transposed(out), target);
}

void require_matrices(const TensorView& tensor, const TensorView& like, int64_t rows, int64_t columns,
                      const char* name) {
    bool fits =
        tensor.ndim == like.ndim && tensor.sizes[tensor.ndim - 2] == rows && tensor.sizes[tensor.ndim - 1] == columns;
    for (int d = 0; fits && d + 2 < like.ndim; ++d) fits = tensor.sizes[d] == like.sizes[d];
    require(fits, "'%s' is expected to have the batches of 'A' and matrices of %lld by %lld", name, rows, columns);
}

}  // namespace

diopiError_t diopiLinalgQR(Context ctx, ConstTensor A, const char* mode, Tensor Q, Tensor R) {
    return guarded([&] {
        const TensorView source = required_view(A, "A");
        require(source.ndim >= 2, "'A' has %d dimensions, expected matrices", source.ndim);
        if (!is_float_dtype(source.dtype)) fail_dtype(source.dtype);
        const bool complete = strcmp(mode, "complete") == 0, alone = strcmp(mode, "r") == 0;
        require(complete || alone || strcmp(mode, "reduced") == 0, "there is no mode '%s'", mode);
        const int64_t rows = source.sizes[source.ndim - 2], columns = source.sizes[source.ndim - 1];
        const int64_t kept = complete ? rows : std::min(rows, columns);
        const TensorView upper = required_view(R, "R");
        require_matrices(upper, source, kept, columns, "R");
        const Reflections reflections = factor(ctx, source);
        write_r(ctx, upper, reflections);
        if (alone) return;
        const TensorView orthonormal = required_view(Q, "Q");
        require_matrices(orthonormal, source, rows, kept, "Q");
        write_q(ctx, orthonormal, reflections);
    });
}


}  // namespace impl::portable
