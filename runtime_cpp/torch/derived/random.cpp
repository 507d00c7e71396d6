// Distributions by transforming uniform and normal numbers of the device's generator.
#include "derivations.h"

#include <ATen/ops/cauchy_ops.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exponential_ops.h>
#include <ATen/ops/geometric_ops.h>
#include <ATen/ops/log_normal_ops.h>

#include <cmath>
#include <numbers>

namespace dipu {
namespace derived {
namespace {

using Generator = std::optional<at::Generator>;

// Numbers in [0, 1), in float32 at least.
at::Tensor uniform(const at::Tensor& x, const Generator& generator) {
    const c10::ScalarType dtype = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return at::empty_like(x, x.options().dtype(dtype)).uniform_(0, 1, generator);
}

at::Tensor& exponential(at::Tensor& x, double lambd, Generator generator) {
    TORCH_CHECK(lambd > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
    return x.copy_(uniform(x, generator).neg_().log1p_().div_(-lambd));
}

at::Tensor& geometric(at::Tensor& x, double p, Generator generator) {
    TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
    return x.copy_(uniform(x, generator).neg_().log1p_().div_(std::log1p(-p)).ceil_().clamp_min_(1));
}

at::Tensor& cauchy(at::Tensor& x, double median, double sigma, Generator generator) {
    TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
    return x.copy_(uniform(x, generator).sub_(0.5).mul_(std::numbers::pi).tan_().mul_(sigma).add_(median));
}

at::Tensor& log_normal(at::Tensor& x, double mean, double std, Generator generator) {
    TORCH_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std=", std);
    const c10::ScalarType dtype = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return x.copy_(at::empty_like(x, x.options().dtype(dtype)).normal_(mean, std, generator).exp_());
}

}  // namespace
}  // namespace derived

void derive_random(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"uniform_", "log1p_", "neg_", "div_.Scalar"}).floats<&derived::exponential, ops::exponential_>();
    d.needs({"uniform_", "log1p_", "ceil_", "clamp_min_", "div_.Scalar"}).add<&derived::geometric, ops::geometric_>();
    d.needs({"uniform_", "tan_", "mul_.Scalar", "add_.Scalar"}).floats<&derived::cauchy, ops::cauchy_>();
    d.needs({"normal_", "exp_"}).floats<&derived::log_normal, ops::log_normal_>();
}

}  // namespace dipu
