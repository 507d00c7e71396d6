// The checks that schemas name.
#include "checks.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/native/AdaptivePooling.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/Gelu.h>
#include <ATen/native/Pool.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/im2col_shape_check.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "dtypes.h"

namespace dipu::checks {

namespace {

// Whether a check of torch's own throws nothing; memory that is short says nothing of the arguments.
template <class Check>
bool passes(const Check& check) {
    try {
        check();
        return true;
    } catch (const c10::OutOfMemoryError&) {
        throw;
    } catch (const c10::Error&) {
        return false;
    }
}

}  // namespace

bool fits(const at::Scalar& value, const at::Tensor& self) {
    return passes([&] {
        switch (self.scalar_type()) {
#define DIPU_CONVERT(type, name) \
    case c10::ScalarType::name: static_cast<void>(value.to<type>()); return;
            AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(DIPU_CONVERT)
#undef DIPU_CONVERT
            default: return;
        }
    });
}

bool fill_mask(const at::Tensor& mask) { return mask.scalar_type() == at::kBool; }

bool masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
    return fill_mask(mask) && fits(value, self);
}

bool masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
    if (value.dim() != 0 || !fill_mask(mask)) {
        return false;
    }
    // A number on the device is read only where no dtype of the tensor's kind would do.
    const bool lossy = value.is_complex() && !self.is_complex();
    const bool read = value.scalar_type() != self.scalar_type() && (value.is_cpu() || lossy);
    return !read || fits(value.item(), self);
}

bool masked_scatter(const at::Tensor& mask) { return fill_mask(mask); }

bool parts(const at::Tensor& first, const at::Tensor& second) {
    const c10::ScalarType dtype = first.scalar_type();
    return dtype == second.scalar_type() && (dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble);
}

bool complex_output(const at::Tensor& part, const at::Tensor& out) {
    return out.scalar_type() == complex_type(part.scalar_type());
}

bool mean_output(const at::Tensor& self, const std::optional<at::ScalarType>& dtype, const at::Tensor& out) {
    // Of integers torch says that they have no mean.
    return c10::isIntegralType(dtype.value_or(self.scalar_type()), true) ||
           c10::canCast(float_type(out.scalar_type()), out.scalar_type());
}

bool result_output(const at::Scalar& number, const at::Tensor& other, const at::Tensor& out) {
    return out.scalar_type() == at::result_type(number, other);
}

bool line_output(const at::Tensor& out, int64_t steps) {
    return out.dim() == 1 && (out.numel() == 0 || out.numel() == steps);
}

bool difference(const at::Tensor& self, const at::Scalar& other) {
    return passes([&] { at::native::sub_check(self, other); });
}

bool freedom(const at::Tensor& self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar>& correction) {
    return passes([&] {
        int64_t count = dim.has_value() && !dim->empty() ? 1 : self.numel();
        for (const int64_t each : dim.value_or(at::IntArrayRef())) {
            count *= self.size(each);
        }
        TORCH_CHECK(static_cast<double>(count) > correction.value_or(1).toDouble());
    });
}

bool roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
    const bool one_each = shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1);
    return !shifts.empty() && one_each && passes([&] {
        for (const int64_t dim : self.numel() == 0 ? at::IntArrayRef() : dims) {
            at::maybe_wrap_dim(dim, self.dim(), false);
        }
    });
}

bool distance(double p) { return p >= 0; }

bool gelu(std::string_view approximate) {
    return passes([&] { at::native::get_gelutype_enum(approximate); });
}

bool hardtanh(const at::Tensor& self, const at::Scalar& min_val, const at::Scalar& max_val) {
    return self.scalar_type() != at::kByte || (min_val.toLong() >= 0 && max_val.toLong() >= 0);
}

namespace {

struct Window {
    int size, stride, padding, dilation;
    int64_t length, windows;
};

int each(at::IntArrayRef values, std::size_t index) { return static_cast<int>(values[values.size() == 1 ? 0 : index]); }

// How the windows lie along one of the last three dimensions.
Window window(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
              at::IntArrayRef dilation, bool ceil_mode, std::size_t index) {
    const int64_t length = self.size(static_cast<int64_t>(index) - 3);
    const int size = each(kernel_size, index);
    Window along{size, stride.empty() ? size : each(stride, index), each(padding, index), each(dilation, index), length,
                 0};
    along.windows =
        at::native::pooling_output_shape<int64_t>(length, size, along.padding, along.stride, along.dilation, ceil_mode);
    return along;
}

bool one_or_three(at::IntArrayRef values) { return values.size() == 1 || values.size() == 3; }

}  // namespace

bool columns(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding,
             at::IntArrayRef stride) {
    const at::IntArrayRef lists[] = {kernel_size, dilation, padding, stride};
    return std::ranges::all_of(lists, [](at::IntArrayRef list) { return list.size() == 2; }) && passes([&] {
               at::native::im2col_shape_check(self, at::Tensor(), kernel_size[0], kernel_size[1], dilation[0],
                                              dilation[1], padding[0], padding[1], stride[0], stride[1]);
           });
}

bool from_columns(const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size,
                  at::IntArrayRef dilation, at::IntArrayRef padding, at::IntArrayRef stride) {
    const at::IntArrayRef lists[] = {output_size, kernel_size, dilation, padding, stride};
    return std::ranges::all_of(lists, [](at::IntArrayRef list) { return list.size() == 2; }) && passes([&] {
               at::native::col2im_shape_check(self, at::Tensor(), output_size[0], output_size[1], kernel_size[0],
                                              kernel_size[1], dilation[0], dilation[1], padding[0], padding[1],
                                              stride[0], stride[1]);
           });
}

bool adaptive_pool(const at::Tensor& grad_output) {
    return passes([&] { at::native::adaptive_pool_empty_output_check(grad_output, "adaptive_pool"); });
}

bool max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
                at::IntArrayRef dilation, bool ceil_mode) {
    if (!one_or_three(kernel_size) || !(stride.empty() || one_or_three(stride)) || !one_or_three(padding) ||
        !one_or_three(dilation)) {
        return false;
    }
    return passes([&] {
        const auto along = [&](std::size_t index) {
            return window(self, kernel_size, stride, padding, dilation, ceil_mode, index);
        };
        const Window t = along(0), h = along(1), w = along(2);
        at::native::pool3d_shape_check(self, self.size(-4), t.size, h.size, w.size, t.stride, h.stride, w.stride,
                                       t.padding, h.padding, w.padding, t.dilation, h.dilation, w.dilation, t.length,
                                       h.length, w.length, t.windows, h.windows, w.windows, "max_pool3d");
    });
}

namespace {

// The least weight, the greatest, and the least sum of a row.
std::array<double, 3> spread(const at::Tensor& weights) {
    const at::Tensor sums = weights.sum(-1);
    const at::Tensor numbers = at::stack({weights.min(), weights.max(), sums.min()}).to(at::kCPU).to(at::kDouble);
    const double* found = numbers.const_data_ptr<double>();
    return {found[0], found[1], found[2]};
}

}  // namespace

bool multinomial(const at::Tensor& self, int64_t num_samples, bool replacement) {
    constexpr int64_t kMostCategories = int64_t{1} << 24;  // as far as float32 counts
    if (self.dim() == 0 || self.dim() > 2 || !at::isFloatingType(self.scalar_type()) || num_samples <= 0 ||
        self.size(-1) > kMostCategories || !(replacement || num_samples <= self.size(-1))) {
        return false;
    }
    if (self.numel() == 0) {
        return true;
    }
    const auto [least, most, sum] = spread(self);
    return least >= 0 && std::isfinite(most) && sum != 0;
}

bool permutation(int64_t n, const at::Tensor& out) {
    return n >= 0 && passes([&] {
               at::native::check_supported_max_int_with_precision(n, at::empty({0}, out.options().device(at::kCPU)));
           });
}

// Torch's own way to draw, of which only the checks remain.
template <class>
struct NoDraw {
    void operator()(auto&&...) const {}
};

bool share(const at::Tensor& self, double p) {
    at::Tensor drawn = self;
    return passes([&] { at::native::templates::bernoulli_impl_<NoDraw, at::Generator>(drawn, p, std::nullopt); });
}

bool deviations(const at::Tensor& deviation) {
    return passes([&] { CHECK_NORMAL_TENSOR_STD(deviation); });
}

bool evenly(const at::Tensor& self, double from, double to) {
    at::Tensor drawn = self;
    return passes([&] { at::native::templates::uniform_impl_<NoDraw, at::Generator>(drawn, from, to, std::nullopt); });
}

namespace {

// Torch draws from `first` on, and leaves out the last numbers where the dtype would round them up to what is left out.
thread_local int64_t first = 0;
thread_local uint64_t count = 0;

template <class>
struct KeepRange {
    void operator()(auto&& /*tensor*/, uint64_t range, int64_t base, auto&& /*generator*/) const {
        first = base;
        count = range;
    }
    void operator()(auto&&...) const {}
};

}  // namespace

bool whole_numbers(const at::Tensor& self, int64_t from, const std::optional<int64_t>& to) {
    at::Tensor drawn = self;
    first = from;
    count = to.has_value() ? static_cast<uint64_t>(*to) - static_cast<uint64_t>(from) : 0;
    const uint64_t all = count;
    return passes([&] {
               at::native::templates::random_from_to_impl<KeepRange, at::Generator>(drawn, from, to, std::nullopt);
           }) &&
           (!to.has_value() || (first == from && count == all));
}

bool whole_numbers(const at::Tensor& self, const std::optional<int64_t>& to) {
    return !to.has_value() || whole_numbers(self, 0, to);
}

bool multinomial_output(const at::Tensor& out) { return out.scalar_type() == at::kLong; }

}  // namespace dipu::checks
