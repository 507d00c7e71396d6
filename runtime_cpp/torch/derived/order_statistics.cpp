// Elements by their rank in a sorted line; NaN is sorted after all numbers.
#include "derivations.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/_unique_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/kthvalue_ops.h>
#include <ATen/ops/median_ops.h>
#include <ATen/ops/mode.h>
#include <ATen/ops/mode_ops.h>
#include <ATen/ops/nanmedian_ops.h>

#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

struct Sorted {
    at::Tensor values;
    at::Tensor indices;
};

Sorted sorted(const at::Tensor& x, int64_t dim) {
    auto [values, indices] = x.sort(std::optional<bool>(true), dim, false);
    return {std::move(values), std::move(indices)};
}

// The elements at `rank`, which has one place along `dim`.
Pair at_rank(const Sorted& line, const at::Tensor& rank, int64_t dim, bool keepdim) {
    const at::Tensor values = line.values.gather(dim, rank);
    const at::Tensor indices = line.indices.gather(dim, rank);
    return keepdim ? Pair{values, indices} : Pair{values.squeeze(dim), indices.squeeze(dim)};
}

Pair kthvalue(const at::Tensor& x, c10::SymInt k, int64_t dim, bool keepdim) {
    const int64_t wrapped = at::maybe_wrap_dim(dim, x.dim());
    const int64_t size = x.dim() == 0 ? 1 : x.size(wrapped);
    const int64_t rank = k.expect_int();
    TORCH_CHECK_INDEX(size > 0, "kthvalue(): Expected reduction dim ", wrapped, " to have non-zero size.");
    TORCH_CHECK(rank >= 1 && rank <= size, "kthvalue(): selected number k out of range for dimension ", wrapped);
    if (x.dim() == 0) {
        return {x.clone(), at::full({}, 0, x.options().dtype(at::kLong))};
    }
    const Sorted line = sorted(x, wrapped);
    const at::Tensor values = line.values.narrow(wrapped, rank - 1, 1);
    const at::Tensor indices = line.indices.narrow(wrapped, rank - 1, 1);
    const auto own = [&](const at::Tensor& place) {
        return (keepdim ? place : place.squeeze(wrapped)).clone(at::MemoryFormat::Contiguous);
    };
    return {own(values), own(indices)};
}

std::tuple<at::Tensor&, at::Tensor&> kthvalue_out(const at::Tensor& x, c10::SymInt k, int64_t dim, bool keepdim,
                                                  at::Tensor& values, at::Tensor& indices) {
    at::assert_no_overlap(x, values);
    const auto [found, places] = kthvalue(x, std::move(k), dim, keepdim);
    assign(values, found);
    assign(indices, places);
    return {values, indices};
}

Pair middle(const at::Tensor& x, int64_t dim, bool keepdim, bool ignore_nan) {
    if (x.dim() == 0) {
        return {x.clone(), at::full({}, 0, x.options().dtype(at::kLong))};
    }
    const int64_t wrapped = at::maybe_wrap_dim(dim, x.dim());
    const int64_t size = x.size(wrapped);
    TORCH_CHECK_INDEX(size > 0, "median(): Expected reduction dim ", wrapped, " to have non-zero size.");
    const at::Tensor missing = x.ne(x).sum(wrapped, true, at::kLong);
    // Whole numbers: half of what is left, rounded down.
    const at::Tensor valid = missing.neg().add(size);
    const at::Tensor among_valid = valid.sub(1).clamp_min(0).div(2, "floor").to(at::kLong);
    const at::Tensor rank =
        ignore_nan ? among_valid : choose(missing.gt(0), valid, at::full_like(valid, (size - 1) / 2));
    return at_rank(sorted(x, wrapped), rank, wrapped, keepdim);
}

Pair median_dim(const at::Tensor& x, int64_t dim, bool keepdim) { return middle(x, dim, keepdim, false); }
Pair nanmedian_dim(const at::Tensor& x, int64_t dim, bool keepdim) { return middle(x, dim, keepdim, true); }

at::Tensor whole(const at::Tensor& x, bool ignore_nan) {
    if (x.numel() == 0) {
        return at::full({}, std::numeric_limits<double>::quiet_NaN(), x.options());
    }
    return std::get<0>(middle(x.reshape({-1}), 0, false, ignore_nan));
}

at::Tensor median(const at::Tensor& x) { return whole(x, false); }
at::Tensor nanmedian(const at::Tensor& x) { return whole(x, true); }

void check_output(const at::Tensor& out, const char* name, c10::Device device, c10::ScalarType dtype) {
    TORCH_CHECK(out.device() == device, "expected device ", device, " but got ", out.device(), " for ", name,
                " output");
    TORCH_CHECK(out.scalar_type() == dtype, "expected scalar type '", dtype, "' but got '", out.scalar_type(), "' for ",
                name, " output");
}

// Torch's own form for outputs asks for a device that it knows.
std::tuple<at::Tensor&, at::Tensor&> mode(const at::Tensor& x, int64_t dim, bool keepdim, at::Tensor& values,
                                          at::Tensor& indices) {
    check_output(values, "values", x.device(), x.scalar_type());
    check_output(indices, "indices", x.device(), at::kLong);
    const auto [found, places] = at::mode(x, dim, keepdim);
    assign(values, found);
    assign(indices, places);
    return {values, indices};
}

Pair unique(const at::Tensor& x, bool sorted, bool return_inverse) {
    auto [values, inverse, counts] = at::_unique2(x, sorted, return_inverse, false);
    return {std::move(values), std::move(inverse)};
}

}  // namespace
}  // namespace derived

void derive_order_statistics(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"sort.stable"})
        .add<&derived::kthvalue, ops::kthvalue>()
        .add<&derived::kthvalue_out, ops::kthvalue_values>();
    d.needs({"sort.stable", "gather", "sum.dim_IntList", "where.self", "div.Scalar_mode"});
    d.add<&derived::median, ops::median>().add<&derived::median_dim, ops::median_dim, ops::median_dim_values>();
    d.add<&derived::nanmedian, ops::nanmedian>()
        .add<&derived::nanmedian_dim, ops::nanmedian_dim, ops::nanmedian_dim_values>();
    d.needs({}).add<&derived::mode, ops::mode_values>();
    d.needs({"_unique2"}).add<&derived::unique, ops::_unique>();
}

}  // namespace dipu
