// Gathering and scattering by positions.
#include "derivations.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/full.h>
#include <ATen/ops/histc_ops.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/isin_ops.h>
#include <ATen/ops/max_unpool2d_ops.h>
#include <ATen/ops/max_unpool3d_ops.h>
#include <ATen/ops/narrow_copy_ops.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/put_ops.h>
#include <ATen/ops/repeat_interleave_ops.h>
#include <ATen/ops/scatter_reduce_ops.h>
#include <ATen/ops/stack_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/unique_consecutive_ops.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "wrapper/arguments.h"
#include "wrapper/checks.h"
#include "wrapper/structured.h"
#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

// Writes `source` to the places `index` of `dim`, or adds it there. No place counts from the end: a negative one, without its sign
// bit, lies far beyond, where it is refused as any other.
at::Tensor index_write(at::Tensor result, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                       bool accumulate) {
    const at::Tensor lines = result.dim() == 0 ? result.unsqueeze(0) : result;
    const at::Tensor values = source.dim() == 0 ? source.unsqueeze(0) : source;
    const at::Tensor flat = index.reshape({-1});
    const int64_t most =
        flat.scalar_type() == at::kLong ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int32_t>::max();
    const at::Tensor places = flat.bitwise_and(most);
    lines.transpose(0, dim).index_put_({std::optional<at::Tensor>(places)}, values.transpose(0, dim), accumulate);
    return result;
}

// Adds to `result`, which holds what the operator adds to.
at::Tensor add_at(const at::Tensor& result, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                  const at::Scalar& alpha) {
    leave_to_torch_unless(checks::fits(alpha, result));
    // Torch takes the whole part of it for integers.
    const bool whole = c10::isIntegralType(result.scalar_type(), false);
    const at::Scalar factor = whole ? at::Scalar(alpha.toLong()) : alpha;
    const bool plain = !factor.isComplex() && factor.toDouble() == 1;
    try {
        return index_write(result, dim, index, plain ? source : source.mul(factor), true);
    } catch (const c10::IndexError& error) {
        // Torch scatters along the first and the last of several dimensions, and a scatter raises another class.
        const int64_t wrapped = at::maybe_wrap_dim(dim, result.dim());
        TORCH_CHECK(result.dim() < 2 || (wrapped != 0 && wrapped != result.dim() - 1), error.msg());
        throw;
    }
}

at::Tensor index_add(const at::Tensor& x, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                     const at::Scalar& alpha) {
    Functional<at::meta::structured_index_add, 1> op;
    op.meta(x, dim, index, source, alpha);
    return add_at(op.output(0).copy_(x), dim, index, source, alpha);
}

at::Tensor& index_add_inplace(at::Tensor& x, int64_t dim, const at::Tensor& index, const at::Tensor& source,
                              const at::Scalar& alpha) {
    Inplace<at::meta::structured_index_add> op(x);
    op.meta(x, dim, index, source, alpha);
    add_at(x, dim, index, source, alpha);
    return x;
}

at::Tensor index_copy(const at::Tensor& x, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
    Functional<at::meta::structured_index_copy, 1> op;
    op.meta(x, dim, index, source);
    return index_write(op.output(0).copy_(x), dim, index, source, false);
}

at::Tensor& index_copy_inplace(at::Tensor& x, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
    Inplace<at::meta::structured_index_copy> op(x);
    op.meta(x, dim, index, source);
    index_write(x, dim, index, source, false);
    return x;
}

at::Tensor take(const at::Tensor& x, const at::Tensor& index) {
    TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
                index.scalar_type());
    const at::Tensor flat = x.reshape({-1});
    const at::Tensor places = index.reshape({-1});
    return flat.index_select(0, choose(places.lt(0), places.add(flat.numel()), places)).view(index.sizes());
}

at::Tensor& take_out(const at::Tensor& x, const at::Tensor& index, at::Tensor& out) {
    TORCH_CHECK(x.scalar_type() == out.scalar_type(),
                "take(): self and out expected to have the same dtype, but got self.dtype = ", x.scalar_type(),
                " and out.dtype = ", out.scalar_type());
    assign(out, take(x, index));
    return out;
}

at::Tensor put(const at::Tensor& x, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
    if (!accumulate) {
        at::globalContext().alertNotDeterministic("put_");
    }
    check_device(index, x.device());
    check_device(source, x.device());
    TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
                index.scalar_type());
    TORCH_CHECK(x.scalar_type() == source.scalar_type(),
                "put_(): self and source expected to have the same dtype, but got self.dtype = ", x.scalar_type(),
                " and source.dtype = ", source.scalar_type());
    TORCH_CHECK(index.numel() == source.numel(),
                "put_(): Expected source and index to have the same number of elements, but got "
                "source.numel() = ",
                source.numel(), ", index.numel() = ", index.numel());
    const at::Tensor flat = x.reshape({-1}).clone();
    flat.index_put_({std::optional<at::Tensor>(index.reshape({-1}))}, source.reshape({-1}), accumulate);
    return flat.view(x.sizes());
}

at::Tensor bincount(const at::Tensor& x, const std::optional<at::Tensor>& weights, c10::SymInt least) {
    const int64_t minlength = least.expect_int();
    TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
    TORCH_CHECK_NOT_IMPLEMENTED(c10::isIntegralType(x.scalar_type(), false), "\"bincount\" not implemented for '",
                                x.scalar_type(), "'");
    TORCH_CHECK(x.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
    const bool weighted = weights.has_value() && weights->defined();
    TORCH_CHECK(!weighted || weights->sizes() == x.sizes(), "weights should be 1-d and have the same length as input");
    const c10::ScalarType dtype = !weighted                              ? at::kLong
                                  : weights->scalar_type() == at::kFloat ? at::kFloat
                                                                         : at::kDouble;
    if (x.numel() == 0) {
        return at::zeros({minlength}, x.options().dtype(at::kLong));
    }
    TORCH_CHECK(x.min().item<int64_t>() >= 0, "bincount only supports 1-d non-negative integral inputs.");
    const int64_t bins = std::max(minlength, x.max().item<int64_t>() + 1);
    const at::Tensor counts = at::zeros({bins}, x.options().dtype(dtype));
    const at::Tensor amounts = weighted ? weights->to(dtype) : at::ones(x.sizes(), counts.options());
    return counts.index_put_({std::optional<at::Tensor>(x.to(at::kLong))}, amounts, true);
}

// Integers, too, which the CPU's histc does not take: frameworks count tokens per expert with it.
at::Tensor histc(const at::Tensor& x, int64_t bins, const at::Scalar& least, const at::Scalar& most) {
    TORCH_CHECK(bins > 0, "bins must be > 0");
    const c10::ScalarType dtype = x.scalar_type();
    const at::Tensor counts = at::zeros({bins}, x.options());
    const at::Tensor flat = x.reshape({-1}).to(dtype == at::kDouble ? at::kDouble : at::kFloat);
    double low = least.toDouble();
    double high = most.toDouble();
    if (low == high && flat.numel() != 0) {
        low = flat.min().item<double>();
        high = flat.max().item<double>();
    }
    if (low == high) {
        low -= 1;
        high += 1;
    }
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high, "] is not finite");
    if (low == high) {  // one more is nothing to numbers this large; what is equal is in the middle
        counts.select(0, bins / 2).copy_(flat.eq(low).sum());
        return counts;
    }
    TORCH_CHECK(low < high, "max must be larger than min");
    const at::Tensor inside = flat.ge(low).logical_and(flat.le(high));
    const at::Tensor places = flat.sub(low).mul(static_cast<double>(bins) / (high - low)).floor().clamp(0, bins - 1);
    const at::Tensor kept = choose(inside.logical_not(), 0, places).to(at::kLong);
    return counts.index_put_({std::optional<at::Tensor>(kept)}, inside.to(dtype), true);
}

at::Tensor isin(const at::Tensor& x, const at::Tensor& wanted, bool /*assume_unique*/, bool invert) {
    leave_to_torch_unless(x.scalar_type() != at::kBool && wanted.scalar_type() != at::kBool);
    const at::Tensor flat = wanted.reshape({-1});
    const at::Tensor found =
        flat.numel() == 0 ? at::zeros(x.sizes(), x.options().dtype(at::kBool)) : x.unsqueeze(-1).eq(flat).any(-1);
    return invert ? found.logical_not() : found;
}

// The row that each place of the result comes from: how many rows end at or before it.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<c10::SymInt> output_size) {
    TORCH_CHECK(repeats.dim() == 1 && c10::isIntegralType(repeats.scalar_type(), false),
                "repeat_interleave only accept 1D vector as repeat, of int64 or int32");
    const at::TensorOptions options = repeats.options().dtype(at::kLong);
    if (repeats.numel() == 0) {
        return at::zeros({0}, repeats.options());
    }
    TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
    const at::Tensor ends = repeats.to(at::kLong).cumsum(0);
    const int64_t size = output_size.has_value() ? output_size->expect_int() : ends.select(0, -1).item<int64_t>();
    const at::Tensor marks = at::zeros({size + 1}, options);
    marks.index_put_({std::optional<at::Tensor>(ends)}, at::ones(ends.sizes(), options), true);
    return marks.cumsum(0).narrow(0, 0, size).to(repeats.scalar_type());
}

at::Tensor channel_shuffle(const at::Tensor& x, c10::SymInt count) {
    const int64_t groups = count.expect_int();
    TORCH_CHECK(x.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", x.sizes());
    TORCH_CHECK(groups > 0 && x.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ",
                x.size(1), " channels and ", groups, " groups.");
    std::vector<int64_t> split = x.sizes().vec();
    split[1] = groups;
    split.insert(split.begin() + 2, x.size(1) / groups);
    return x.reshape(split).transpose(1, 2).reshape(x.sizes());
}

// Values go back to where pooling took them from; the last dimensions are one line of places.
at::Tensor unpool(const at::Tensor& x, const at::Tensor& indices, at::IntArrayRef size, int64_t planes) {
    TORCH_CHECK(static_cast<int64_t>(size.size()) == planes && (x.dim() == planes + 1 || x.dim() == planes + 2),
                "There should be ", planes, " elements in output_size, and ", planes + 1, " or ", planes + 2,
                " dimensions");
    TORCH_CHECK(indices.scalar_type() == at::kLong && x.sizes() == indices.sizes(),
                "Expected shape of indices to be same as that of the input tensor (", x.sizes(),
                ") but got indices tensor with shape: ", indices.sizes());
    std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end() - planes);
    std::vector<int64_t> lines = shape;
    shape.insert(shape.end(), size.begin(), size.end());
    const int64_t line = c10::multiply_integers(size);
    lines.push_back(line);
    const at::Tensor out = at::zeros(lines, x.options());
    if (x.numel() == 0) {
        return out.view(shape);
    }
    TORCH_CHECK(indices.min().item<int64_t>() >= 0 && indices.max().item<int64_t>() < line,
                "Found an invalid max index: the indices must lie within the output's ", line, " places");
    lines.back() = -1;
    return out.scatter_(-1, indices.reshape(lines), x.reshape(lines)).view(shape);
}

at::Tensor max_unpool2d(const at::Tensor& x, const at::Tensor& indices, c10::SymIntArrayRef size) {
    at::globalContext().alertNotDeterministic("max_unpooling2d_forward_out");
    return unpool(x, indices, C10_AS_INTARRAYREF_SLOW(size), 2);
}

at::Tensor max_unpool3d(const at::Tensor& x, const at::Tensor& indices, c10::SymIntArrayRef size,
                        at::IntArrayRef stride, at::IntArrayRef /*padding*/) {
    leave_to_torch_unless(std::all_of(stride.begin(), stride.end(), [](int64_t step) { return step > 0; }));
    at::globalContext().alertNotDeterministic("max_unpooling3d_forward_out");
    return unpool(x, indices, C10_AS_INTARRAYREF_SLOW(size), 3);
}

at::Tensor narrow_copy(const at::Tensor& x, int64_t dim, c10::SymInt start, c10::SymInt length) {
    return x.narrow(dim, start.expect_int(), length.expect_int()).clone(at::MemoryFormat::Contiguous);
}

// Tensors of several dtypes meet in one where they are joined.
at::Tensor stack(at::TensorList tensors, int64_t dim) {
    TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
    const int64_t wrapped = at::maybe_wrap_dim(dim, tensors[0].dim() + 1);
    std::vector<at::Tensor> slices;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        TORCH_CHECK(tensors[i].sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
                    tensors[0].sizes(), " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
        slices.push_back(tensors[i].unsqueeze(wrapped));
    }
    return at::cat(slices, wrapped);
}

at::Tensor& fill_tensor(at::Tensor& x, const at::Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
                " dimensions.");
    return x.copy_(value.expand(x.sizes()));
}

}  // namespace
}  // namespace derived

void derive_indexing(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"_index_put_impl_", "lt.Scalar", "where.self", "fill_.Scalar"});
    d.add<&derived::index_add, ops::index_add, ops::index_add_out>();
    d.add<&derived::index_add_inplace, ops::index_add_>();
    d.add<&derived::index_copy, ops::index_copy, ops::index_copy_out>();
    d.add<&derived::index_copy_inplace, ops::index_copy_>();
    d.add<&derived::put, ops::put_>();
    d.needs({"_index_put_impl_", "max", "min"}).add<&derived::bincount, ops::bincount>();
    d.add<&derived::histc, ops::histc, ops::histc_out>();
    d.needs({"index_select", "where.self", "lt.Scalar"})
        .add<&derived::take, ops::take>()
        .add<&derived::take_out, ops::take_out>();
    d.needs({"eq.Tensor", "any.dim"}).add<&derived::isin, ops::isin_Tensor_Tensor, ops::isin_Tensor_Tensor_out>();
    d.needs({"_index_put_impl_", "cumsum"}).add<&derived::repeat_interleave, ops::repeat_interleave_Tensor>();
    d.needs({"scatter_.src", "zeros.out"}).floats<&derived::max_unpool2d, ops::max_unpool2d, ops::max_unpool2d_out>();
    d.floats<&derived::max_unpool3d, ops::max_unpool3d, ops::max_unpool3d_out>();
    d.needs({"cat"}).add<&derived::stack, ops::stack, ops::stack_out>();
    d.needs({}).add<&derived::channel_shuffle, ops::channel_shuffle>();
    d.add<&derived::narrow_copy, ops::narrow_copy, ops::narrow_copy_out>();
    d.add<&derived::fill_tensor, ops::fill__Tensor>();
}

}  // namespace dipu
