// Tensors that are made from sizes alone.
#include "derivations.h"

#include <ATen/ops/eye_ops.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/logspace_ops.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tril_indices_ops.h>
#include <ATen/ops/triu_indices_ops.h>

#include "wrapper/checks.h"

namespace dipu {
namespace derived {
namespace {

at::Tensor& eye_m(c10::SymInt rows, c10::SymInt columns, at::Tensor& out) {
    const int64_t n = rows.expect_int();
    const int64_t m = columns.expect_int();
    TORCH_CHECK(n >= 0 && m >= 0, "n and m must be greater or equal to 0, got ", n, " and ", m);
    out.resize_({n, m}).zero_();
    out.diagonal().fill_(1);
    return out;
}

at::Tensor& eye(c10::SymInt rows, at::Tensor& out) { return eye_m(rows, rows, out); }

at::Tensor& logspace(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
    TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
    leave_to_torch_unless(checks::line_output(out, steps));
    // Integers have whole exponents at both ends.
    const bool whole = c10::isIntegralType(out.scalar_type(), true);
    const c10::ScalarType dtype = whole || out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Scalar first = whole ? at::Scalar(start.toLong()) : start;
    const at::Scalar last = whole ? at::Scalar(end.toLong()) : end;
    const at::Tensor exponents = at::linspace(first, last, steps, out.options().dtype(dtype));
    assign(out, at::pow(base, exponents).to(out.scalar_type()));
    return out;
}

using Dtype = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;

// Rows and columns of the elements that a triangle keeps, row by row.
at::Tensor positions(const at::Tensor& triangle, Dtype dtype) {
    return triangle.nonzero().t().contiguous().to(dtype.value_or(at::kLong));
}

at::Tensor tril_indices(int64_t rows, int64_t columns, int64_t offset, Dtype dtype, Layout, Device device,
                        std::optional<bool>) {
    return positions(at::ones({rows, columns}, at::TensorOptions().device(device)).tril(offset), dtype);
}

at::Tensor triu_indices(int64_t rows, int64_t columns, int64_t offset, Dtype dtype, Layout, Device device,
                        std::optional<bool>) {
    return positions(at::ones({rows, columns}, at::TensorOptions().device(device)).triu(offset), dtype);
}

}  // namespace
}  // namespace derived

void derive_factories(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"zero_", "fill_.Scalar"}).add<&derived::eye, ops::eye_out>().add<&derived::eye_m, ops::eye_m_out>();
    d.needs({"linspace.out", "pow.Scalar"}).add<&derived::logspace, ops::logspace_out>();
    d.needs({"ones.out", "tril", "nonzero"}).add<&derived::tril_indices, ops::tril_indices>();
    d.needs({"ones.out", "triu", "nonzero"}).add<&derived::triu_indices, ops::triu_indices>();
}

}  // namespace dipu
