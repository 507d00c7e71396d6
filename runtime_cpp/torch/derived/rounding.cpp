// Rounding by floor and ceil, and the parts of numbers.
#include "derivations.h"

#include <ATen/ops/copysign_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/signbit_ops.h>
#include <ATen/ops/trunc_ops.h>

#include <cmath>

#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

bool is_whole(const at::Tensor& x) { return c10::isIntegralType(x.scalar_type(), true); }

at::Tensor trunc(const at::Tensor& x) { return is_whole(x) ? x.clone() : choose(x.lt(0), x.ceil(), x.floor()); }

at::Tensor frac(const at::Tensor& x) { return x.sub(trunc(x)); }

// Halves go to the even neighbour. The difference to the floor is exact.
at::Tensor round(const at::Tensor& x) {
    if (is_whole(x)) {
        return x.clone();
    }
    const at::Tensor below = x.floor();
    const at::Tensor distance = x.sub(below);
    const at::Tensor odd = below.remainder(2).ne(0);
    const at::Tensor up = distance.gt(0.5).logical_or(distance.eq(0.5).logical_and(odd));
    const at::Tensor rounded = choose(up, below.add(1), below);
    return choose(is_negative(x), rounded.abs().neg(), rounded);  // -0.5 becomes -0
}

at::Tensor round_decimals(const at::Tensor& x, int64_t decimals) {
    if (decimals == 0) {
        return round(x);
    }
    if (const auto half = half_type(x)) {
        return round_decimals(x.to(at::kFloat), decimals).to(*half);
    }
    const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
    return decimals > 0 ? round(x.mul(power)).div(power) : round(x.div(power)).mul(power);
}

at::Tensor signbit(const at::Tensor& x) { return is_negative(x); }

at::Tensor copysign(const at::Tensor& x, const at::Tensor& sign) {
    const at::Tensor size = as_float(x).abs();
    const at::Tensor signs = is_negative(sign);
    return choose(signs, size.neg(), size).to(float_type(common_type(x, sign)));
}

// The remainder of what is positive takes the dividend's sign.
at::Tensor fmod(const at::Tensor& dividend, const at::Tensor& by) {
    const auto [x, divisor] = as_common(dividend, by);
    if (is_whole(x)) {
        const at::Tensor below = x.remainder(divisor);
        // remainder takes the divisor's sign: one step back where that is not the dividend's.
        return choose(below.ne(0).logical_and(x.lt(0).ne(divisor.lt(0))), below.sub(divisor), below);
    }
    const at::Tensor size = x.abs().remainder(divisor.abs());
    return choose(is_negative(x), size.neg(), size);
}

}  // namespace
}  // namespace derived

void derive_rounding(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"floor", "ceil", "lt.Scalar", "where.self"});
    d.add<&derived::trunc, ops::trunc, ops::trunc_, ops::trunc_out>();
    d.floats<&derived::frac, ops::frac, ops::frac_, ops::frac_out>();
    d.needs({"lt.Scalar"}).add<&derived::signbit, ops::signbit, ops::signbit_out>();
    d.needs({"floor", "sub.Tensor", "remainder.Scalar", "where.self", "logical_or", "logical_and", "add.Scalar", "abs",
             "neg", "signbit"});
    d.add<&derived::round, ops::round, ops::round_, ops::round_out>();
    d.floats<&derived::round_decimals, ops::round_decimals, ops::round__decimals, ops::round_decimals_out>();
    d.needs({"abs", "neg", "where.self", "signbit"});
    d.add<&derived::copysign, ops::copysign_Tensor, ops::copysign__Tensor, ops::copysign_out>();
    d.needs({"remainder.Tensor", "abs", "neg", "where.self", "signbit"});
    d.add<&derived::fmod, ops::fmod_Tensor, ops::fmod__Tensor, ops::fmod_Tensor_out>();
}

}  // namespace dipu
