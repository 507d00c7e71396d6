// Elementwise functions of one and two numbers.
#include "derivations.h"

#include <ATen/ops/angle_ops.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/heaviside_ops.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/ldexp_ops.h>
#include <ATen/ops/logaddexp2_ops.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/logical_xor_ops.h>
#include <ATen/ops/nan_to_num_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sinc_ops.h>
#include <ATen/ops/special_entr_ops.h>
#include <ATen/ops/special_xlog1py_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/xlogy_ops.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

using std::numbers::ln2;
using std::numbers::pi;

at::Tensor exp2(const at::Tensor& x) { return at::pow(2, as_float(x)); }

at::Tensor sinc(const at::Tensor& x) {
    if (const auto half = half_type(x)) {
        return sinc(x.to(at::kFloat)).to(*half);
    }
    const at::Tensor angle = as_float(x).mul(pi);
    return choose(angle.eq(0), 1, angle.sin().div(angle));
}

// The largest (or smallest) number that the dtype holds.
double limit(c10::ScalarType dtype, bool largest) {
    switch (dtype) {
        case c10::kDouble: return largest ? std::numeric_limits<double>::max() : std::numeric_limits<double>::lowest();
        case c10::kHalf: return largest ? 65504.0 : -65504.0;
        case c10::kBFloat16: return largest ? 3.3895313892515355e38 : -3.3895313892515355e38;
        default: return largest ? std::numeric_limits<float>::max() : std::numeric_limits<float>::lowest();
    }
}

at::Tensor nan_to_num(const at::Tensor& x, std::optional<double> nan, std::optional<double> above,
                      std::optional<double> below) {
    if (c10::isIntegralType(x.scalar_type(), true)) {
        return x.clone();
    }
    const c10::ScalarType dtype = x.scalar_type();
    const double infinity = std::numeric_limits<double>::infinity();
    // What the dtype does not hold is what torch's conversion makes of it: the nearest number, or an infinity.
    const auto number = [&](double value) {
        return std::abs(value) > limit(dtype, true) ? at::scalar_tensor(value, at::kDouble).to(dtype).item().toDouble()
                                                    : value;
    };
    return choose(x.ne(x), number(nan.value_or(0)), x)
        .masked_fill_(x.eq(infinity), number(above.value_or(limit(dtype, true))))
        .masked_fill_(x.eq(-infinity), number(below.value_or(limit(dtype, false))));
}

at::Tensor heaviside(const at::Tensor& x, const at::Tensor& at_zero) {
    TORCH_CHECK(x.scalar_type() == at_zero.scalar_type(),
                "heaviside is not yet implemented for tensors with different dtypes.");
    const at::Tensor step = x.gt(0).to(x.scalar_type());
    return choose(x.eq(0), at_zero, choose(x.ne(x), 0, step));
}

at::Tensor& heaviside_out(const at::Tensor& x, const at::Tensor& at_zero, at::Tensor& out) {
    TORCH_CHECK(x.scalar_type() == out.scalar_type(),
                "heaviside is not yet implemented for tensors with different dtypes.");
    assign(out, heaviside(x, at_zero));
    return out;
}

at::Tensor logical_xor(const at::Tensor& x, const at::Tensor& y) { return x.ne(0).ne(y.ne(0)); }

at::Tensor bitwise_xor(const at::Tensor& x, const at::Tensor& y) {
    return x.bitwise_or(y).bitwise_and(x.bitwise_and(y).bitwise_not());
}

at::Tensor fmax(const at::Tensor& x, const at::Tensor& y) {
    return choose(x.ne(x), y, choose(y.ne(y), x, x.maximum(y)));
}

at::Tensor fmin(const at::Tensor& x, const at::Tensor& y) {
    return choose(x.ne(x), y, choose(y.ne(y), x, x.minimum(y)));
}

// Scaled by the larger side, so that squares neither overflow nor vanish.
at::Tensor hypot(const at::Tensor& width, const at::Tensor& height) {
    if (const auto half = half_type(width, height)) {
        return hypot(widened(width, *half), widened(height, *half)).to(*half);
    }
    const auto [x, y] = as_common(width, height);
    const at::Tensor a = x.abs();
    const at::Tensor b = y.abs();
    const at::Tensor longer = a.maximum(b);
    const at::Tensor ratio = a.minimum(b).div(longer);
    const at::Tensor length = longer.mul(ratio.mul(ratio).add(1).sqrt());
    const at::Tensor infinite =
        a.eq(std::numeric_limits<double>::infinity()).logical_or(b.eq(std::numeric_limits<double>::infinity()));
    return choose(infinite, std::numeric_limits<double>::infinity(), choose(longer.eq(0), 0, length));
}

// By two factors, since one alone may leave the range that the product is in.
at::Tensor ldexp(const at::Tensor& x, const at::Tensor& exponent) {
    const at::Tensor wide = without_half(as_float(x));
    const at::Tensor power = exponent.to(wide.scalar_type());
    const at::Tensor first = power.div(2, "floor");
    return wide.mul(at::pow(2.0, first)).mul(at::pow(2.0, power.sub(first))).to(float_type(common_type(x, exponent)));
}

at::Tensor atan2(const at::Tensor& y, const at::Tensor& x) {
    if (const auto half = half_type(y, x)) {
        return atan2(widened(y, *half), widened(x, *half)).to(*half);
    }
    const auto [rise, given] = as_common_float(y, x);
    // The result lies as the first operand, which the last choice would not see.
    const bool alike = given.sizes() == rise.sizes() && given.strides() != rise.strides();
    const at::Tensor run = alike ? at::empty_like(rise).copy_(given) : given;
    // Only the signs count where both are infinite.
    const double infinity = std::numeric_limits<double>::infinity();
    const at::Tensor both = rise.abs().eq(infinity).logical_and(run.abs().eq(infinity));
    const at::Tensor angle = choose(both, rise.sign(), rise).div(choose(both, run.sign(), run)).atan();
    const at::Tensor down = is_negative(rise);
    const at::Tensor half_turn = number(angle, pi).where(down.logical_not(), number(angle, -pi));
    // Nothing over nothing has no quotient: the angle is a whole or a half turn by the signs.
    const at::Tensor flat = choose(rise.eq(0).logical_and(run.eq(0)), rise.to(angle.scalar_type()), angle);
    const at::Tensor turned = choose(rise.eq(0), half_turn, flat.add(half_turn));
    return choose(is_negative(run), turned, flat);
}

at::Tensor angle(const at::Tensor& x) {
    if (x.is_complex()) {
        const at::Tensor parts = at::view_as_real(x.resolve_conj());
        return atan2(parts.select(-1, 1), parts.select(-1, 0));
    }
    const at::Tensor real = as_float(x);
    return choose(real.ne(real), real, real.lt(0).to(real.scalar_type()).mul(pi));
}

// log(exp(x) + exp(y)) from the larger one on.
at::Tensor log_add(const at::Tensor& first, const at::Tensor& second, double base_log) {
    if (const auto half = half_type(first, second)) {
        return log_add(widened(first, *half), widened(second, *half), base_log).to(*half);
    }
    const auto [x, y] = as_common_float(first, second);
    const at::Tensor larger = x.maximum(y);
    const at::Tensor gap = x.sub(y).abs().neg().mul(base_log).exp().log1p().div(base_log);
    // Two equal infinities have no difference.
    return choose(x.eq(y).logical_and(x.abs().eq(std::numeric_limits<double>::infinity())), larger, larger.add(gap));
}

at::Tensor logaddexp(const at::Tensor& x, const at::Tensor& y) { return log_add(x, y, 1); }
at::Tensor logaddexp2(const at::Tensor& x, const at::Tensor& y) { return log_add(x, y, ln2); }

// x times log(y) or log(1 + y), and 0 where x is 0, whatever the logarithm is, but for NaN.
at::Tensor weighted(const at::Tensor& weight, const at::Tensor& of, at::Tensor (at::Tensor::*logarithm)() const) {
    if (const auto half = half_type(weight, of)) {
        return weighted(widened(weight, *half), widened(of, *half), logarithm).to(*half);
    }
    const auto [x, y] = as_common_float(weight, of);
    return choose(x.eq(0).logical_and(y.eq(y)), 0, x.mul((y.*logarithm)()));
}

at::Tensor xlogy(const at::Tensor& x, const at::Tensor& y) { return weighted(x, y, &at::Tensor::log); }
at::Tensor xlog1py(const at::Tensor& x, const at::Tensor& y) { return weighted(x, y, &at::Tensor::log1p); }

at::Tensor entr(const at::Tensor& x) {
    if (const auto half = half_type(x)) {
        return entr(x.to(at::kFloat)).to(*half);
    }
    const at::Tensor real = as_float(x);
    const at::Tensor bits = choose(real.eq(0), 0, real.mul(real.log()).neg());
    return choose(real.lt(0), -std::numeric_limits<double>::infinity(), bits);
}

at::Tensor dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
    return grad.mul(mask).mul_(scale);
}

at::Tensor rsub(const at::Tensor& x, const at::Tensor& y, const at::Scalar& alpha) {
    return at::_ops::sub_Tensor::call(y, x, alpha);
}

at::Tensor floor_divide(const at::Tensor& x, const at::Tensor& y) {
    return at::_ops::div_Tensor_mode::call(x, y, "floor");
}

at::Tensor& floor_divide_inplace(at::Tensor& x, const at::Tensor& y) {
    return at::_ops::div__Tensor_mode::call(x, y, "floor");
}

at::Tensor& floor_divide_out(const at::Tensor& x, const at::Tensor& y, at::Tensor& out) {
    return at::_ops::div_out_mode::call(x, y, "floor", out);
}

}  // namespace
}  // namespace derived

void derive_pointwise(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"sub.Tensor"}).forward<&derived::rsub, ops::rsub_Tensor>();
    d.needs({"div.Tensor_mode"}).forward<&derived::floor_divide, ops::floor_divide>();
    d.needs({"div_.Tensor_mode"}).forward<&derived::floor_divide_inplace, ops::floor_divide__Tensor>();
    d.needs({"div.out_mode"}).forward<&derived::floor_divide_out, ops::floor_divide_out>();
    d.needs({"mul.Tensor", "mul_.Scalar"}).add<&derived::dropout_backward, ops::native_dropout_backward>();
    d.needs({"pow.Scalar"}).add<&derived::exp2, ops::exp2, ops::exp2_, ops::exp2_out>();
    d.needs({"sin", "div.Tensor", "mul.Scalar", "where.self", "fill_.Scalar"})
        .add<&derived::sinc, ops::sinc, ops::sinc_, ops::sinc_out>();
    d.needs({"ne.Tensor", "eq.Scalar", "where.self", "fill_.Scalar", "masked_fill_.Scalar"});
    d.add<&derived::nan_to_num, ops::nan_to_num, ops::nan_to_num_, ops::nan_to_num_out>();
    d.needs({"gt.Scalar", "eq.Scalar", "where.self", "fill_.Scalar"});
    d.add<&derived::heaviside, ops::heaviside, ops::heaviside_>().add<&derived::heaviside_out, ops::heaviside_out>();
    d.needs({"ne.Scalar", "ne.Tensor"})
        .add<&derived::logical_xor, ops::logical_xor, ops::logical_xor_, ops::logical_xor_out>();
    d.needs({"bitwise_or.Tensor", "bitwise_and.Tensor", "bitwise_not"});
    d.add<&derived::bitwise_xor, ops::bitwise_xor_Tensor, ops::bitwise_xor__Tensor, ops::bitwise_xor_Tensor_out>();
    d.needs({"ne.Tensor", "where.self", "maximum"}).add<&derived::fmax, ops::fmax, ops::fmax_out>();
    d.needs({"ne.Tensor", "where.self", "minimum"}).add<&derived::fmin, ops::fmin, ops::fmin_out>();
    d.needs({"abs", "maximum", "minimum", "div.Tensor", "mul.Tensor", "sqrt", "where.self", "fill_.Scalar"});
    d.floats<&derived::hypot, ops::hypot, ops::hypot_, ops::hypot_out>();
    d.needs({"div.Tensor_mode", "pow.Scalar", "mul.Tensor", "sub.Tensor"});
    d.add<&derived::ldexp, ops::ldexp_Tensor, ops::ldexp_, ops::ldexp_out>();
    d.needs({"atan", "div.Tensor", "where.self", "sign", "signbit", "add.Tensor"});
    d.add<&derived::atan2, ops::atan2, ops::atan2_, ops::atan2_out>();
    d.needs({"exp", "log1p", "maximum", "where.self", "sub.Tensor"});
    d.floats<&derived::logaddexp, ops::logaddexp, ops::logaddexp_out>();
    d.floats<&derived::logaddexp2, ops::logaddexp2, ops::logaddexp2_out>();
    d.needs({"log", "mul.Tensor", "where.self", "fill_.Scalar", "eq.Tensor"});
    d.add<&derived::xlogy, ops::xlogy_Tensor, ops::xlogy__Tensor, ops::xlogy_OutTensor>();
    d.needs({"log1p", "mul.Tensor", "where.self", "fill_.Scalar", "eq.Tensor"});
    d.add<&derived::xlog1py, ops::special_xlog1py, ops::special_xlog1py_out>();
    d.needs({"log", "mul.Tensor", "neg", "where.self", "fill_.Scalar"})
        .add<&derived::entr, ops::special_entr, ops::special_entr_out>();
    d.needs({"lt.Scalar", "mul.Scalar", "where.self"}).add<&derived::angle, ops::angle, ops::angle_out>();
}

}  // namespace dipu
