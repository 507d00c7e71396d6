// Reductions and scans.
#include "derivations.h"

#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/count_nonzero_ops.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/std_mean_ops.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/trace_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

#include <algorithm>

#include "wrapper/checks.h"
#include "wrapper/structured.h"
#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Dims = at::OptionalIntArrayRef;

// The dimensions that a reduction names, from the last one on; all of them where it names none. Throws c10::Error where it names one
// twice.
std::vector<int64_t> reduced_dims(const at::Tensor& x, Dims dims) {
    std::vector<int64_t> found;
    if (!dims.has_value() || dims->empty()) {
        for (int64_t dim = x.dim() - 1; dim >= 0; --dim) {
            found.push_back(dim);
        }
        return found;
    }
    const auto named = at::dim_list_to_bitset(*dims, static_cast<std::size_t>(x.dim()));
    for (int64_t dim = std::max<int64_t>(x.dim(), 1) - 1; dim >= 0; --dim) {
        if (named[static_cast<std::size_t>(dim)]) {
            found.push_back(dim);
        }
    }
    return found;
}

at::Tensor amin(const at::Tensor& x, at::IntArrayRef dims, bool keepdim) {
    if (x.numel() == 0) {
        at::native::zero_numel_check_dims(x, dims, "amin()");
    }
    at::Tensor least = x;
    for (const int64_t dim : reduced_dims(x, dims)) {
        least = std::get<0>(least.min(dim, keepdim));
    }
    return least.is_same(x) ? x.clone() : least;
}

at::Tensor& amin_out(const at::Tensor& x, at::IntArrayRef dims, bool keepdim, at::Tensor& out) {
    TORCH_CHECK(x.scalar_type() == out.scalar_type(), "Expected the dtype for input and out to match, but got ",
                x.scalar_type(), " for input's dtype and ", out.scalar_type(), " for out's dtype.");
    assign(out, amin(x, dims, keepdim));
    return out;
}

Pair aminmax(const at::Tensor& x, std::optional<int64_t> dim, bool keepdim) {
    TORCH_CHECK(x.numel() != 0 || dim.has_value(),
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
    const std::vector<int64_t> dims = dim.has_value() ? std::vector<int64_t>{*dim} : std::vector<int64_t>{};
    return {amin(x, dims, keepdim), at::amax(x, dims, keepdim)};
}

std::tuple<at::Tensor&, at::Tensor&> aminmax_out(const at::Tensor& x, std::optional<int64_t> dim, bool keepdim,
                                                 at::Tensor& least, at::Tensor& greatest) {
    OutVariant<at::meta::structured_aminmax, 2> op(least, greatest);
    op.meta(x, dim, keepdim);
    const auto [low, high] = aminmax(x, dim, keepdim);
    assign(least, low);
    assign(greatest, high);
    return {least, greatest};
}

// The standard deviation, of halves as floats, whose square keeps more digits; and the mean.
Pair moments(const at::Tensor& x, Dims dims, const std::optional<at::Scalar>& correction, bool keepdim) {
    leave_to_torch_unless(checks::freedom(x, dims, correction));
    const std::vector<int64_t> over = reduced_dims(x, dims);
    const at::Tensor wide = without_half(x);
    return {wide.std(over, correction, keepdim), wide.mean(over, keepdim).to(x.scalar_type())};
}

// The vendor's standard deviation neither cancels nor leaves the range in between, as a sum of squares would.
Pair var_mean(const at::Tensor& x, Dims dims, const std::optional<at::Scalar>& correction, bool keepdim) {
    const auto [deviation, mean] = moments(x, dims, correction, keepdim);
    return {deviation.mul(deviation).to(c10::toRealValueType(x.scalar_type())), mean};
}

at::Tensor var(const at::Tensor& x, Dims dims, const std::optional<at::Scalar>& correction, bool keepdim) {
    const at::Tensor deviation = std::get<0>(moments(x, dims, correction, keepdim));
    return deviation.mul(deviation).to(c10::toRealValueType(x.scalar_type()));
}

Pair std_mean(const at::Tensor& x, Dims dims, const std::optional<at::Scalar>& correction, bool keepdim) {
    const auto [deviation, mean] = moments(x, dims, correction, keepdim);
    return {deviation.to(c10::toRealValueType(x.scalar_type())), mean};
}

at::Tensor nansum(const at::Tensor& x, Dims dims, bool keepdim, std::optional<at::ScalarType> dtype) {
    const at::Tensor numbers = c10::isFloatingType(x.scalar_type()) ? x.masked_fill(x.ne(x), 0) : x;
    return numbers.sum(dims, keepdim, dtype);
}

// Integers are summed in the output's dtype, as by `sum`.
at::Tensor& nansum_out(const at::Tensor& x, Dims dims, bool keepdim, std::optional<at::ScalarType> dtype,
                       at::Tensor& out) {
    if (c10::isIntegralType(x.scalar_type(), true)) {
        return at::sum_out(out, x, dims, keepdim, dtype);
    }
    assign(out, nansum(x, dims, keepdim, dtype));
    return out;
}

at::Tensor count_nonzero(const at::Tensor& x, at::IntArrayRef dims) { return x.ne(0).sum(dims, false, at::kLong); }

// Of all elements: those of one line.
at::Tensor prod(const at::Tensor& x, std::optional<at::ScalarType> dtype) {
    const c10::ScalarType wanted = dtype.value_or(sum_type(x.scalar_type()));
    return x.to(wanted).reshape({-1}).prod(0, false, wanted);
}

at::Tensor trace(const at::Tensor& x) {
    TORCH_CHECK(x.dim() == 2, "trace: expected a matrix, but got tensor with dim ", x.dim());
    return x.diagonal().sum();
}

// Each pass doubles the reach of an element, so that a line of n takes log2(n) of them.
at::Tensor cumprod(const at::Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype) {
    const c10::ScalarType wanted = dtype.value_or(sum_type(x.scalar_type()));
    // Halves would be rounded once more in each pass.
    const bool half = wanted == at::kHalf || wanted == at::kBFloat16;
    at::Tensor product = x.to(half ? at::kFloat : wanted).clone(at::MemoryFormat::Contiguous);
    if (x.dim() == 0) {
        return product.to(wanted);
    }
    const int64_t size = product.size(dim);
    for (int64_t reach = 1; reach < size; reach *= 2) {
        const at::Tensor farther = product.narrow(dim, reach, size - reach).mul(product.narrow(dim, 0, size - reach));
        product.narrow(dim, reach, size - reach).copy_(farther);
    }
    return product.to(wanted);
}

// The output says the dtype of the products, as far as the call does not.
at::Tensor& cumprod_out(const at::Tensor& x, int64_t dim, std::optional<at::ScalarType> dtype, at::Tensor& out) {
    const c10::ScalarType wanted = dtype.value_or(out.scalar_type());
    TORCH_CHECK(wanted == out.scalar_type(), "Expected out tensor to have dtype ", c10::scalarTypeToTypeMeta(wanted),
                ", but got ", out.dtype(), " instead");
    assign(out, cumprod(x, dim, wanted));
    return out;
}

}  // namespace
}  // namespace derived

void derive_reductions(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"min.dim"}).add<&derived::amin, ops::amin>().add<&derived::amin_out, ops::amin_out>();
    d.needs({"amin", "amax"}).add<&derived::aminmax, ops::aminmax>().add<&derived::aminmax_out, ops::aminmax_out>();
    d.needs({"mean.dim", "std.correction", "mul.Tensor"});
    d.add<&derived::var, ops::var_correction, ops::var_correction_out>();
    d.add<&derived::var_mean, ops::var_mean_correction>();
    d.add<&derived::std_mean, ops::std_mean_correction>();
    d.needs({"ne.Tensor", "masked_fill.Scalar", "sum.dim_IntList"});
    d.add<&derived::nansum, ops::nansum>().add<&derived::nansum_out, ops::nansum_out>();
    d.needs({"ne.Scalar", "sum.dim_IntList"}).add<&derived::count_nonzero, ops::count_nonzero_dim_IntList>();
    d.needs({"prod.dim_int"}).add<&derived::prod, ops::prod, ops::prod_out>();
    d.needs({"sum.dim_IntList"}).add<&derived::trace, ops::trace>();
    d.needs({"mul.Tensor"})
        .add<&derived::cumprod, ops::cumprod, ops::cumprod_>()
        .add<&derived::cumprod_out, ops::cumprod_out>();
}

}  // namespace dipu
