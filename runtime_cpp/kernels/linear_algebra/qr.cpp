// The QR factorization by Householder's reflections, in double, with the signs of LAPACK.
#include <diopi/diopirt.h>

#include <algorithm>
#include <cstring>

#include "copy/copy.h"
#include "core/view.h"
#include "solver.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Matrices in double, column by column, as the solver takes them.
struct Columns {
    TensorView transposed;
    int64_t rows, columns, batch;

    Columns(Context ctx, const TensorView& like)
        : transposed(temporary_like(ctx, matrix_transposed(like), diopi_dtype_float64)),
          rows(like.sizes[like.ndim - 2]),
          columns(like.sizes[like.ndim - 1]),
          batch(1) {
        for (int d = 0; d + 2 < like.ndim; ++d) batch *= like.sizes[d];
    }
    double* elements() const { return transposed.as<double>(); }
};

// The elements of `source` above and on the diagonal, with zeros below; or with `whole` all, with the columns of a unit
// matrix where it has none.
void copy_columns(Context ctx, const Columns& target, const Columns& source, bool whole) {
    for_each(
        ctx, target.transposed.numel, DIOPI_LAMBDA(int64_t i) {
            const int64_t line = i / target.rows, row = i - line * target.rows;
            const int64_t matrix = line / target.columns, c = line - matrix * target.columns;
            const bool taken = whole ? c < source.columns : row <= c;
            const double other = whole && row == c ? 1 : 0;
            target.transposed.as<double>()[i] =
                taken ? source.transposed.as<double>()[(matrix * source.columns + c) * source.rows + row] : other;
        });
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
        const int64_t count = std::min(rows, columns);
        const auto room = [&](int64_t bytes) { return workspace(ctx, bytes); };
        const Columns work(ctx, source);
        copy_elements(ctx, work.transposed, matrix_transposed(source));
        double* const tau = workspace_of<double>(ctx, work.batch * count);
        const bool reflects = work.transposed.numel > 0;
        if (reflects) diopi::kernels::geqrf(stream_of(ctx), rows, columns, work.elements(), tau, work.batch, room);
        const Columns triangle(ctx, upper);
        copy_columns(ctx, triangle, work, false);
        copy_elements(ctx, matrix_transposed(upper), triangle.transposed);
        if (alone) return;
        const TensorView orthonormal = required_view(Q, "Q");
        require_matrices(orthonormal, source, rows, kept, "Q");
        const Columns product(ctx, orthonormal);
        copy_columns(ctx, product, work, true);
        if (reflects)
            diopi::kernels::orgqr(stream_of(ctx), rows, kept, count, product.elements(), tau, work.batch, room);
        copy_elements(ctx, matrix_transposed(orthonormal), product.transposed);
    });
}

}  // namespace impl::portable
