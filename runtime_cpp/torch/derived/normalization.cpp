// The further names of batch normalization, weights as a length and a direction, and norms that are bounded.
#include "derivations.h"

#include <ATen/ops/_batch_norm_no_update_ops.h>
#include <ATen/ops/_batch_norm_with_update_ops.h>
#include <ATen/ops/_native_batch_norm_legit_ops.h>
#include <ATen/ops/_weight_norm_interface_backward_ops.h>
#include <ATen/ops/_weight_norm_interface_ops.h>
#include <ATen/ops/batch_norm_backward_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/renorm_ops.h>

#include "numbers.h"

namespace dipu {
namespace derived {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Three legit(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const at::Tensor& mean,
            const at::Tensor& var, bool training, double momentum, double eps) {
    return at::native_batch_norm(x, weight, bias, mean, var, training, momentum, eps);
}

Three legit_no_stats(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, bool training,
                     double momentum, double eps) {
    return at::native_batch_norm(x, weight, bias, {}, {}, training, momentum, eps);
}

// What the vendor keeps for the gradient is in the statistics: the reserve is empty.
Four reserved(Three results, const at::Tensor& x) {
    auto& [out, mean, invstd] = results;
    return {std::move(out), std::move(mean), std::move(invstd), at::empty({0}, x.options().dtype(at::kByte))};
}

Four with_update(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, const at::Tensor& mean,
                 const at::Tensor& var, double momentum, double eps) {
    return reserved(at::native_batch_norm(x, weight, bias, mean, var, true, momentum, eps), x);
}

Four no_update(const at::Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias,
               const OptionalTensor& mean, const OptionalTensor& var, double momentum, double eps) {
    return reserved(at::native_batch_norm(x, weight, bias, mean, var, false, momentum, eps), x);
}

Three backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& mean,
               const OptionalTensor& var, const OptionalTensor& save_mean, const OptionalTensor& save_var, bool update,
               double eps, std::array<bool, 3> mask, const at::Tensor& /*reserve*/) {
    return at::native_batch_norm_backward(grad, x, weight, mean, var, save_mean, save_var, update, eps, mask);
}

std::vector<int64_t> all_but(int64_t dim, int64_t rank) {
    std::vector<int64_t> others;
    for (int64_t d = 0; d < rank; ++d) {
        if (d != at::maybe_wrap_dim(dim, rank)) {
            others.push_back(d);
        }
    }
    return others;
}

using Two = std::tuple<at::Tensor, at::Tensor>;

// g in the direction of v, and the lengths of v, float32 beside halves.
Two weight_norm(const at::Tensor& v, const at::Tensor& g, int64_t dim) {
    const c10::ScalarType kept = promoted(g.scalar_type(), at::kFloat);
    const std::vector<int64_t> others = all_but(dim, v.dim());
    const at::Tensor wide = v.to(kept);
    // no dimension would mean all of them
    const at::Tensor lengths =
        (others.empty() ? wide.abs() : at::linalg_vector_norm(wide, 2, others, true)).reshape(g.sizes());
    return {wide.mul(g.to(kept).div(lengths)).to(v.scalar_type()), lengths};
}

Two weight_norm_backward(const at::Tensor& grad, const at::Tensor& v, const at::Tensor& g, const at::Tensor& norms,
                         int64_t dim) {
    const c10::ScalarType kept = promoted(g.scalar_type(), at::kFloat);
    const at::Tensor lengths = norms.to(kept), wide = v.to(kept);
    const std::vector<int64_t> others = all_but(dim, v.dim());
    at::Tensor along = grad.to(kept).mul(wide);
    along = others.empty() ? along : along.sum(others, true);
    along = along.reshape(g.sizes()).div(lengths);
    const at::Tensor across = grad.sub(wide.mul(along.div(lengths)));
    return {across.mul(g.to(kept).div(lengths)).to(v.scalar_type()), along.to(g.scalar_type())};
}

at::Tensor renorm(const at::Tensor& x, const at::Scalar& p, int64_t dim, const at::Scalar& most) {
    TORCH_CHECK(x.dim() > 1, "renorm: input needs at least 2 dimensions, got ", x.dim(), " dimensions");
    const at::Tensor size = at::linalg_vector_norm(x, p, all_but(dim, x.dim()), true);
    return x.mul(choose(size.gt(most), size.add(1e-7).reciprocal().mul(most), at::ones_like(size))).contiguous();
}

}  // namespace
}  // namespace derived

void derive_normalization(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"native_batch_norm"});
    d.add<&derived::legit, ops::_native_batch_norm_legit, ops::_native_batch_norm_legit_out>();
    d.add<&derived::legit_no_stats, ops::_native_batch_norm_legit_no_stats,
          ops::_native_batch_norm_legit_no_stats_out>();
    d.add<&derived::with_update, ops::_batch_norm_with_update, ops::_batch_norm_with_update_out>();
    d.add<&derived::no_update, ops::_batch_norm_no_update>();
    d.needs({"native_batch_norm_backward"}).add<&derived::backward, ops::batch_norm_backward>();
    d.needs({"linalg_vector_norm", "abs", "mul.Tensor", "div.Tensor"});
    d.add<&derived::weight_norm, ops::_weight_norm_interface, ops::_weight_norm_interface_out>();
    d.needs({"sum.dim_IntList", "mul.Tensor", "div.Tensor", "sub.Tensor"});
    d.add<&derived::weight_norm_backward, ops::_weight_norm_interface_backward,
          ops::_weight_norm_interface_backward_out>();
    d.needs({"linalg_vector_norm", "reciprocal", "mul.Tensor", "where.self"});
    d.add<&derived::renorm, ops::renorm, ops::renorm_, ops::renorm_out>();
}

}  // namespace dipu
