// The checks that schemas name; the words are torch's own.
#include "checks.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/DistributionTemplates.h>
#include <ATen/native/Gelu.h>
#include <ATen/native/Pool.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <array>
#include <cmath>

#include "dtypes.h"

namespace dipu::checks {

void fits(const at::Scalar& value, const at::Tensor& self) {
    switch (self.scalar_type()) {
#define DIPU_CONVERT(type, name) \
    case c10::ScalarType::name: static_cast<void>(value.to<type>()); return;
        AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(DIPU_CONVERT)
#undef DIPU_CONVERT
        default: return;
    }
}

void separate(const at::Tensor& out, std::initializer_list<at::Tensor> read) {
    at::assert_no_internal_overlap(out);
    for (const at::Tensor& tensor : read) {
        at::assert_no_overlap(out, tensor);
    }
}

void fill_mask(const at::Tensor& mask) {
    TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
                mask.dtype());
}

void masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
    fill_mask(mask);
    fits(value, self);
}

void masked_fill(const at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                value.dim(), " dimension(s).");
    fill_mask(mask);
    // A number on the device is read only where no dtype of the tensor's kind would do.
    const bool lossy = value.is_complex() && !self.is_complex();
    if (value.scalar_type() != self.scalar_type() && (value.is_cpu() || lossy)) {
        fits(value.item(), self);
    }
}

void masked_scatter(const at::Tensor& mask) {
    TORCH_CHECK(mask.scalar_type() == at::kBool,
                "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.scalar_type());
}

void parts(const at::Tensor& first, const at::Tensor& second) {
    const auto is_part = [](c10::ScalarType dtype) {
        return dtype == at::kHalf || dtype == at::kFloat || dtype == at::kDouble;
    };
    TORCH_CHECK(is_part(first.scalar_type()) && is_part(second.scalar_type()),
                "Expected both inputs to be Half, Float or Double tensors but got ", first.scalar_type(), " and ",
                second.scalar_type());
    TORCH_CHECK(first.scalar_type() == second.scalar_type(), "Expected object of scalar type ", first.scalar_type(),
                " but got scalar type ", second.scalar_type(), " for second argument");
}

void complex_output(const at::Tensor& part, const at::Tensor& out) {
    const c10::ScalarType wanted = complex_type(part.scalar_type());
    TORCH_CHECK(out.scalar_type() == wanted, "Expected object of scalar type ", wanted, " but got scalar type ",
                out.scalar_type(), " for argument 'out'");
}

void mean_output(const at::Tensor& self, const std::optional<at::ScalarType>& dtype, const at::Tensor& out) {
    // Of integers torch says that they have no mean.
    if (!c10::isIntegralType(dtype.value_or(self.scalar_type()), true)) {
        check_cast(float_type(out.scalar_type()), out);
    }
}

void roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
    TORCH_CHECK(!shifts.empty(), "`shifts` required");
    TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
                "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
    for (const int64_t dim : self.numel() == 0 ? at::IntArrayRef() : dims) {
        at::maybe_wrap_dim(dim, self.dim(), false);
    }
}

void distance(double p) { TORCH_CHECK(p >= 0, "cdist only supports non-negative p values"); }

void gelu(std::string_view approximate) { at::native::get_gelutype_enum(approximate); }

void hardtanh(const at::Tensor& self, const at::Scalar& min_val, const at::Scalar& max_val) {
    TORCH_CHECK(self.scalar_type() != at::kByte || (min_val.toLong() >= 0 && max_val.toLong() >= 0),
                "cannot do hardtanh on an unsigned type with negative limits");
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

void max_pool3d(const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
                at::IntArrayRef dilation, bool ceil_mode) {
    TORCH_CHECK(one_or_three(kernel_size),
                "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
    TORCH_CHECK(stride.empty() || one_or_three(stride),
                "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
    TORCH_CHECK(one_or_three(padding), "max_pool3d: padding must either be a single int, or a tuple of three ints");
    TORCH_CHECK(one_or_three(dilation), "max_pool3d: dilation must be either a single int, or a tuple of three ints");
    const int64_t channels = self.size(-4);
    const auto along = [&](std::size_t index) {
        return window(self, kernel_size, stride, padding, dilation, ceil_mode, index);
    };
    const Window t = along(0), h = along(1), w = along(2);
    at::native::pool3d_shape_check(self, channels, t.size, h.size, w.size, t.stride, h.stride, w.stride, t.padding,
                                   h.padding, w.padding, t.dilation, h.dilation, w.dilation, t.length, h.length,
                                   w.length, t.windows, h.windows, w.windows,
                                   "max_pool3d_with_indices_out_dipu_template()");
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

void multinomial(const at::Tensor& self, int64_t num_samples, bool replacement) {
    constexpr int64_t kMostCategories = int64_t{1} << 24;  // as far as float32 counts
    TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
    TORCH_CHECK(at::isFloatingType(self.scalar_type()),
                "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
    TORCH_CHECK(num_samples > 0, "cannot sample n_sample <= 0 samples");
    TORCH_CHECK(replacement || num_samples <= self.size(-1),
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    TORCH_CHECK(self.size(-1) <= kMostCategories, "number of categories cannot exceed 2^24");
    if (self.numel() == 0) {
        return;
    }
    const auto [least, most, sum] = spread(self);
    if (replacement && num_samples != 1) {
        TORCH_CHECK(least >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
        TORCH_CHECK(std::isfinite(most),
                    "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    }
    TORCH_CHECK(least >= 0 && most < INFINITY, "probability tensor contains either `inf`, `nan` or element < 0");
    TORCH_CHECK(sum != 0, "invalid multinomial distribution (sum of probabilities <= 0)");
}

void permutation(int64_t n, const at::Tensor& out) {
    TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
    at::native::check_supported_max_int_with_precision(n, at::empty({0}, out.options().device(at::kCPU)));
}

// Torch's own way to draw, of which only the checks remain.
template <class>
struct NoDraw {
    void operator()(auto&&...) const {}
};

void share(const at::Tensor& self, double p) {
    at::Tensor drawn = self;
    at::native::templates::bernoulli_impl_<NoDraw, at::Generator>(drawn, p, std::nullopt);
}

void shares(const at::Tensor& self) {
    if (self.numel() == 0) {
        return;
    }
    const auto [least, most] = at::aminmax(self);
    const at::Tensor ends = at::stack({least, most}).to(at::kCPU).to(at::kDouble);
    for (int64_t index = 0; index < ends.numel(); ++index) {
        const double p_in = ends.const_data_ptr<double>()[index];
        TORCH_CHECK(p_in >= 0 && p_in <= 1);  // torch's own names, which are its text
    }
}

void deviations(const at::Tensor& deviation) { CHECK_NORMAL_TENSOR_STD(deviation); }

void whole_numbers(const at::Tensor& self, int64_t from, const std::optional<int64_t>& to) {
    at::Tensor drawn = self;
    at::native::templates::random_from_to_impl<NoDraw, at::Generator>(drawn, from, to, std::nullopt);
}

void whole_numbers(const at::Tensor& self, const std::optional<int64_t>& to) {
    if (to.has_value()) {
        at::native::templates::check_from_to_in_range(0, *to - 1, self.dtype());
    }
}

void multinomial_output(const at::Tensor& out) {
    TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
}

}  // namespace dipu::checks
