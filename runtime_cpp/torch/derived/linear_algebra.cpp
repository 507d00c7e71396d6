// Products of vectors by products of matrices, and solvers by triangular systems.
#include "derivations.h"

#include <ATen/ops/_cholesky_solve_helper_ops.h>
#include <ATen/ops/addbmm_ops.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/cholesky_inverse_ops.h>
#include <ATen/ops/cholesky_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_cross_ops.h>
#include <ATen/ops/linalg_solve_triangular_ops.h>
#include <ATen/ops/matmul_backward_ops.h>
#include <ATen/ops/triangular_solve.h>
#include <ATen/ops/vdot_ops.h>

#include <array>

#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

void check_vectors(const char* name, const at::Tensor& x, const at::Tensor& y) {
    TORCH_CHECK(x.dim() == 1 && y.dim() == 1, "1D tensors expected, but got ", x.dim(), "D and ", y.dim(), "D tensors");
    TORCH_CHECK(x.scalar_type() == y.scalar_type(), name, " : expected both vectors to have same dtype, but found ",
                x.scalar_type(), " and ", y.scalar_type());
    TORCH_CHECK(x.numel() == y.numel(), "inconsistent tensor size, expected tensor [", x.numel(), "] and src [",
                y.numel(), "] to have the same number of elements, but got ", x.numel(), " and ", y.numel(),
                " elements respectively");
}

at::Tensor dot(const at::Tensor& x, const at::Tensor& y) {
    check_vectors("dot", x, y);
    return x.unsqueeze(0).mm(y.unsqueeze(1)).squeeze();
}

at::Tensor vdot(const at::Tensor& x, const at::Tensor& y) {
    check_vectors("vdot", x, y);
    return dot(x.conj(), y);
}

at::Tensor addmv(const at::Tensor& x, const at::Tensor& matrix, const at::Tensor& vector, const at::Scalar& beta,
                 const at::Scalar& alpha) {
    TORCH_CHECK(matrix.dim() == 2 && vector.dim() == 1 && x.dim() <= 1, "vector + matrix @ vector expected, got ",
                x.dim(), ", ", matrix.dim(), ", ", vector.dim());
    TORCH_CHECK(matrix.size(1) == vector.size(0) && (x.dim() == 0 || x.numel() == matrix.size(0) || x.numel() == 1),
                "size mismatch, got input (", x.dim() == 0 ? 1 : x.numel(), "), mat (", matrix.size(0), "x",
                matrix.size(1), "), vec (", vector.size(0), ")");
    return x.expand({matrix.size(0)}).unsqueeze(1).addmm(matrix, vector.unsqueeze(1), beta, alpha).squeeze(1);
}

// One product: the batches stand side by side along the summed dimension.
at::Tensor addbmm(const at::Tensor& x, const at::Tensor& first, const at::Tensor& second, const at::Scalar& beta,
                  const at::Scalar& alpha) {
    TORCH_CHECK(first.dim() == 3 && second.dim() == 3, "batch1 and batch2 must be 3D tensors, got ", first.dim(),
                "D and ", second.dim(), "D");
    TORCH_CHECK(first.size(0) == second.size(0) && first.size(2) == second.size(1),
                "Incompatible matrix sizes for bmm (", first.size(1), "x", first.size(2), " and ", second.size(1), "x",
                second.size(2), ")");
    const at::Tensor rows = first.transpose(0, 1).reshape({first.size(1), first.size(0) * first.size(2)});
    const at::Tensor columns = second.reshape({second.size(0) * second.size(1), second.size(2)});
    return x.expand({rows.size(0), columns.size(1)}).addmm(rows, columns, beta, alpha);
}

// A vector on the left is a row, one on the right a column; what was broadcast is summed.
std::tuple<at::Tensor, at::Tensor> matmul_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& y,
                                                   std::array<bool, 2> mask) {
    const at::Tensor rows = x.dim() == 1 ? x.unsqueeze(0) : x;
    const at::Tensor columns = y.dim() == 1 ? y.unsqueeze(-1) : y;
    at::Tensor flowing = y.dim() == 1 ? grad.unsqueeze(-1) : grad;
    flowing = x.dim() == 1 ? flowing.unsqueeze(-2) : flowing;
    return {mask[0] ? flowing.matmul(columns.mT()).sum_to_size(rows.sizes()).reshape(x.sizes()) : at::Tensor(),
            mask[1] ? rows.mT().matmul(flowing).sum_to_size(columns.sizes()).reshape(y.sizes()) : at::Tensor()};
}

at::Tensor cross(const at::Tensor& x, const at::Tensor& y, int64_t dim) {
    TORCH_CHECK(x.dim() == y.dim() && x.size(dim) == 3 && y.size(dim) == 3, "linalg.cross: inputs dimension ", dim,
                " must have length 3. Got ", x.size(dim), " and ", y.size(dim));
    TORCH_CHECK(x.scalar_type() == y.scalar_type(), "linalg.cross: factors of ", x.scalar_type(), " and ",
                y.scalar_type());
    const std::vector<at::Tensor> both = at::broadcast_tensors({x, y});
    const at::Tensor &a = both[0], &b = both[1];
    return a.roll(-1, dim).mul(b.roll(-2, dim)).sub(a.roll(-2, dim).mul(b.roll(-1, dim)));
}

at::Tensor addr(const at::Tensor& x, const at::Tensor& column, const at::Tensor& row, const at::Scalar& beta,
                const at::Scalar& alpha) {
    TORCH_CHECK(column.dim() == 1 && row.dim() == 1, "addr: the factors have ", column.dim(), " and ", row.dim(),
                " dimensions");
    const c10::ScalarType common =
        c10::promoteTypes(c10::promoteTypes(x.scalar_type(), column.scalar_type()), row.scalar_type());
    if (common == at::kBool) {
        const at::Tensor outer =
            column.unsqueeze(1).logical_and(row.unsqueeze(0)).logical_and_(number(x, alpha.toBool()));
        return outer.logical_or_(x.logical_and(number(x, beta.toBool())));
    }
    leave_to_torch_unless(!alpha.equal(0));  // torch reads the factors all the same, a product of matrices does not
    return at::addmm(x.to(common), column.to(common).unsqueeze(1), row.to(common).unsqueeze(0), beta, alpha);
}

at::Tensor solve_triangular(const at::Tensor& matrix, const at::Tensor& right, bool upper, bool left,
                            bool unitriangular) {
    if (!left) {
        // X A = B is A^T X^T = B^T.
        return solve_triangular(matrix.mT(), right.mT(), !upper, true, unitriangular).mT();
    }
    TORCH_CHECK(matrix.dim() >= 2 && right.dim() >= 2 && matrix.size(-1) == matrix.size(-2),
                "linalg.solve_triangular: A must be batches of square matrices, but they are ", matrix.sizes());
    TORCH_CHECK(matrix.size(-1) == right.size(-2),
                "linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B (", matrix.size(-2),
                "x", matrix.size(-1), " and ", right.size(-2), "x", right.size(-1), ")");
    return std::get<0>(at::triangular_solve(right, matrix, upper, false, unitriangular));
}

at::Tensor cholesky(const at::Tensor& x, bool upper) { return at::linalg_cholesky(x, upper); }

at::Tensor cholesky_solve(const at::Tensor& right, const at::Tensor& factor, bool upper) {
    const at::Tensor lower = upper ? factor.mH() : factor;
    const at::Tensor inner = solve_triangular(lower, right, false, true, false);
    return solve_triangular(lower.mH(), inner, true, true, false);
}

at::Tensor cholesky_inverse(const at::Tensor& factor, bool upper) {
    return cholesky_solve(at::eye(factor.size(-1), factor.options()).expand_as(factor), factor, upper);
}

}  // namespace
}  // namespace derived

template <>
inline constexpr bool kTakesItself<at::_ops::addmv_out> = true;  // mv.out is addmv.out(out, ...)

void derive_linear_algebra(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"mm"}).add<&derived::dot, ops::dot>().add<&derived::vdot, ops::vdot>();
    d.needs({"addmm"}).add<&derived::addmv, ops::addmv, ops::addmv_, ops::addmv_out>();
    d.add<&derived::addbmm, ops::addbmm, ops::addbmm_, ops::addbmm_out>();
    d.needs({"mm", "bmm", "sum.dim_IntList"}).add<&derived::matmul_backward, ops::matmul_backward>();
    d.needs({"addmm", "logical_and", "logical_or"}).add<&derived::addr, ops::addr, ops::addr_, ops::addr_out>();
    d.needs({"roll", "mul.Tensor", "sub.Tensor"}).add<&derived::cross, ops::linalg_cross, ops::linalg_cross_out>();
    d.needs({"triangular_solve"});
    d.add<&derived::solve_triangular, ops::linalg_solve_triangular, ops::linalg_solve_triangular_out>();
    d.add<&derived::cholesky_solve, ops::_cholesky_solve_helper>();
    d.needs({"triangular_solve", "eye.m_out"})
        .add<&derived::cholesky_inverse, ops::cholesky_inverse, ops::cholesky_inverse_out>();
    d.needs({"linalg_cholesky_ex"}).add<&derived::cholesky, ops::cholesky, ops::cholesky_out>();
}

}  // namespace dipu
