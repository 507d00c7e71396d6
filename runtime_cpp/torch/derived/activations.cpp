// Activations and elementwise losses, with their gradients.
#include "derivations.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/hardshrink_backward_ops.h>
#include <ATen/ops/hardshrink_ops.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/huber_loss_backward_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/logit_backward_ops.h>
#include <ATen/ops/logit_ops.h>
#include <ATen/ops/mish_backward_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/softshrink_backward_ops.h>
#include <ATen/ops/softshrink_ops.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "numbers.h"
#include "wrapper/checks.h"

namespace dipu {
namespace derived {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

at::Tensor softplus(const at::Tensor& x, const at::Scalar& beta, const at::Scalar& threshold) {
    const at::Tensor scaled = without_half(x).mul(beta);
    return choose(scaled.gt(threshold), x, scaled.exp().log1p().div(beta).to(x.scalar_type()));
}

at::Tensor softplus_backward(const at::Tensor& grad, const at::Tensor& x, const at::Scalar& beta,
                             const at::Scalar& threshold) {
    const at::Tensor scaled = x.mul(beta);
    return choose(scaled.gt(threshold), grad, grad.mul(scaled.sigmoid()));
}

at::Tensor mish(const at::Tensor& x) { return x.mul(softplus(x, 1, 20).tanh()); }

at::Tensor mish_backward(const at::Tensor& grad, const at::Tensor& x) {
    const at::Tensor squashed = softplus(x, 1, 20).tanh();
    return grad.mul(squashed.add(x.mul(x.sigmoid()).mul(squashed.mul(squashed).neg().add(1))));
}

at::Tensor elu(const at::Tensor& x, const at::Scalar& alpha, const at::Scalar& scale, const at::Scalar& input_scale) {
    const at::Tensor below = x.mul(input_scale).expm1().mul(alpha.toDouble() * scale.toDouble());
    return choose(x.gt(0), x.mul(scale), below);
}

at::Tensor elu_backward(const at::Tensor& grad, const at::Scalar& alpha, const at::Scalar& scale,
                        const at::Scalar& input_scale, bool is_result, const at::Tensor& x) {
    const double slope = input_scale.toDouble() * alpha.toDouble() * scale.toDouble();
    TORCH_CHECK(!is_result || alpha.toDouble() >= 0,
                "In-place elu backward calculation is triggered with a negative slope which is not "
                "supported. This is caused by calling in-place forward function with a negative slope, please call "
                "out-of-place "
                "version instead.");
    const at::Tensor below =
        is_result ? x.add(alpha.toDouble() * scale.toDouble()).mul(input_scale) : x.mul(input_scale).exp().mul(slope);
    return grad.mul(choose(x.gt(0), scale, below));
}

at::Tensor hardsigmoid(const at::Tensor& x) { return x.add(3).clamp(0, 6).div(6); }

at::Tensor hardsigmoid_backward(const at::Tensor& grad, const at::Tensor& x) {
    return choose(x.gt(-3).logical_and(x.lt(3)).logical_not(), 0, grad.div(6));
}

// Whether `x` lies within -lambd .. lambd; NaN does not.
at::Tensor is_within(const at::Tensor& x, const at::Scalar& lambd) { return x.abs().le(lambd); }

at::Tensor hardshrink(const at::Tensor& x, const at::Scalar& lambd) { return choose(is_within(x, lambd), 0, x); }

at::Tensor hardshrink_backward(const at::Tensor& grad, const at::Tensor& x, const at::Scalar& lambd) {
    return choose(is_within(x, lambd), 0, grad);
}

at::Tensor softshrink_backward(const at::Tensor& grad, const at::Tensor& x, const at::Scalar& lambd) {
    return choose(is_within(x, lambd), 0, grad);
}

at::Tensor softshrink(const at::Tensor& x, const at::Scalar& lambd) {
    TORCH_CHECK(lambd.toDouble() >= 0, "lambda must be greater or equal to 0, but found to be ", lambd.toDouble(), ".");
    return choose(is_within(x, lambd), 0, x.sub(x.sign().mul(lambd)));
}

at::Tensor logit(const at::Tensor& x, std::optional<double> eps) {
    const at::Tensor real = as_float(x);
    if (eps.has_value()) {
        leave_to_torch_unless(checks::fits(*eps, real));
    }
    // Torch looks at the lower end first, which is the greater one for an eps above a half.
    const at::Tensor inside =
        eps.value_or(-1) < 0 ? real : choose(real.lt(*eps), *eps, choose(real.gt(1 - *eps), 1 - *eps, real));
    return inside.div(inside.neg().add(1)).log();
}

at::Tensor logit_backward(const at::Tensor& grad, const at::Tensor& x, std::optional<double> eps) {
    const at::Tensor slope = grad.div(x.mul(x.neg().add(1)));
    const double low = eps.value_or(0);
    const at::Tensor outside = x.lt(low).logical_or(x.gt(1 - low));
    return choose(outside, eps.value_or(-1) < 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0, slope);
}

// The buffer is torch's own business on the CPU. Whoever traces a graph foresees one of the input's sizes; one number of them all
// is enough.
Pair log_sigmoid_forward(const at::Tensor& x) {
    return {x.clamp_max(0).sub(x.abs().neg().exp().log1p()), at::zeros({}, x.options()).expand(x.sizes())};
}

at::Tensor log_sigmoid_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& /*buffer*/) {
    return grad.mul(x.neg().sigmoid());
}

Pair halves(const at::Tensor& x, int64_t dim) {
    TORCH_CHECK(x.dim() > 0, "glu does not support 0-dimensional tensors");
    const int64_t size = x.size(dim);
    TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", at::maybe_wrap_dim(dim, x.dim()),
                " is size ", size);
    return {x.narrow(dim, 0, size / 2), x.narrow(dim, size / 2, size / 2)};
}

at::Tensor glu(const at::Tensor& x, int64_t dim) {
    const auto [value, gate] = halves(x, dim);
    return value.mul(gate.sigmoid());
}

at::Tensor glu_backward(const at::Tensor& grad, const at::Tensor& x, int64_t dim) {
    const auto [value, gate] = halves(x, dim);
    const at::Tensor open = gate.sigmoid();
    const at::Tensor grad_value = grad.mul(open);
    return at::cat({grad_value, grad_value.mul(value).mul(open.neg().add(1))}, dim);
}

at::Tensor prelu(const at::Tensor& x, const at::Tensor& weight) { return choose(x.gt(0), x, x.mul(weight)); }

Pair prelu_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight) {
    const at::Tensor above = x.gt(0);
    return {choose(above, grad, grad.mul(weight)), choose(above, 0, grad.mul(x))};
}

at::Tensor huber_loss(const at::Tensor& x, const at::Tensor& target, int64_t reduction, double delta) {
    TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
    check_cast(common_type(x, target), x);
    const auto [given, wanted] = as_common(x, target);
    const at::Tensor distance = given.sub(wanted).abs();
    const at::Tensor loss =
        choose(distance.le(delta), distance.mul(distance).mul(0.5), distance.sub(0.5 * delta).mul(delta))
            .to(x.scalar_type());
    return reduction == at::Reduction::None ? loss : reduction == at::Reduction::Mean ? loss.mean() : loss.sum();
}

at::Tensor huber_loss_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& target, int64_t reduction,
                               double delta) {
    const at::Tensor slope = x.sub(target).clamp(-delta, delta);
    const at::Tensor flowing = slope.mul(grad);
    return reduction == at::Reduction::Mean ? flowing.div(slope.numel()) : flowing;
}

}  // namespace
}  // namespace derived

void derive_activations(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"exp", "log1p", "sigmoid", "tanh", "where.self", "gt.Scalar", "mul.Scalar"});
    d.floats<&derived::softplus, ops::softplus, ops::softplus_out>();
    d.floats<&derived::softplus_backward, ops::softplus_backward, ops::softplus_backward_grad_input>();
    d.floats<&derived::mish, ops::mish, ops::mish_, ops::mish_out>();
    d.floats<&derived::mish_backward, ops::mish_backward>();
    d.needs({"expm1", "exp", "gt.Scalar", "where.self", "fill_.Scalar", "mul.Scalar"});
    d.floats<&derived::elu, ops::elu, ops::elu_, ops::elu_out>();
    d.floats<&derived::elu_backward, ops::elu_backward, ops::elu_backward_grad_input>();
    d.needs({"clamp", "gt.Scalar", "lt.Scalar", "where.self", "fill_.Scalar", "div.Scalar"});
    d.floats<&derived::hardsigmoid, ops::hardsigmoid, ops::hardsigmoid_, ops::hardsigmoid_out>();
    d.floats<&derived::hardsigmoid_backward, ops::hardsigmoid_backward, ops::hardsigmoid_backward_grad_input>();
    d.needs({"abs", "le.Scalar", "where.self", "fill_.Scalar", "sign"});
    d.floats<&derived::hardshrink, ops::hardshrink, ops::hardshrink_out>();
    d.floats<&derived::hardshrink_backward, ops::hardshrink_backward, ops::hardshrink_backward_grad_input>();
    d.floats<&derived::softshrink, ops::softshrink, ops::softshrink_out>();
    d.floats<&derived::softshrink_backward, ops::softshrink_backward, ops::softshrink_backward_grad_input>();
    d.needs({"clamp", "log", "div.Tensor", "where.self", "fill_.Scalar"});
    d.add<&derived::logit, ops::logit, ops::logit_, ops::logit_out>();
    d.add<&derived::logit_backward, ops::logit_backward, ops::logit_backward_grad_input>();
    d.needs({"clamp_max", "abs", "exp", "log1p", "sigmoid"});
    d.floats<&derived::log_sigmoid_forward, ops::log_sigmoid_forward, ops::log_sigmoid_forward_output>();
    d.floats<&derived::log_sigmoid_backward, ops::log_sigmoid_backward, ops::log_sigmoid_backward_grad_input>();
    d.needs({"sigmoid", "mul.Tensor", "cat"});
    d.floats<&derived::glu, ops::glu, ops::glu_out>();
    d.floats<&derived::glu_backward, ops::glu_backward, ops::glu_backward_grad_input>();
    d.needs({"gt.Scalar", "mul.Tensor", "where.self", "fill_.Scalar"});
    d.add<&derived::prelu, ops::_prelu_kernel>();
    d.add<&derived::prelu_backward, ops::_prelu_kernel_backward>();
    d.needs({"abs", "le.Scalar", "where.self", "clamp", "mean.dim", "sum.dim_IntList"});
    d.floats<&derived::huber_loss, ops::huber_loss, ops::huber_loss_out>();
    d.floats<&derived::huber_loss_backward, ops::huber_loss_backward, ops::huber_loss_backward_out>();
}

}  // namespace dipu
