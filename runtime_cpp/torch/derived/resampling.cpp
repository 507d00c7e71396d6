// Nearest-exact interpolation: each dimension is gathered by the element whose centre lies nearest.
#include "derivations.h"

#include <ATen/ops/_upsample_nearest_exact1d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact1d_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_backward_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <array>

#include "wrapper/checks.h"

namespace dipu {
namespace derived {
namespace {

using Scale = std::optional<double>;

at::Tensor nearest(const at::Tensor& x, int64_t in, int64_t out, Scale scale) {
    const bool given = scale.has_value() && *scale > 0;
    const float step = given ? static_cast<float>(1.0 / *scale) : static_cast<float>(in) / static_cast<float>(out);
    const at::Tensor centres = at::arange(out, x.options().dtype(at::kFloat)).add(0.5).mul(step);
    return centres.floor().to(at::kLong).clamp(0, in - 1);
}

template <std::size_t N>
at::Tensor stretch(const at::Tensor& x, c10::SymIntArrayRef size, const std::array<Scale, N>& scales) {
    TORCH_CHECK(x.dim() == static_cast<int64_t>(N) + 2, "It is expected input_size equals to ", N + 2,
                ", but got size ", x.dim());
    leave_to_torch_unless(checks::pixels(x));
    at::Tensor result = x;
    for (std::size_t k = 0; k < N; ++k) {
        const auto dim = static_cast<int64_t>(k) + 2;
        const int64_t out = size[k].expect_int();
        TORCH_CHECK(x.size(dim) > 0 && out > 0, "Input and output sizes should be greater than 0, but got input ",
                    x.sizes(), " and output ", size);
        result = result.index_select(dim, nearest(x, x.size(dim), out, scales[k]));
    }
    return result.contiguous(x.suggest_memory_format());
}

template <std::size_t N>
at::Tensor stretch_backward(const at::Tensor& grad, c10::SymIntArrayRef input, const std::array<Scale, N>& scales) {
    at::Tensor result = grad;
    for (std::size_t k = 0; k < N; ++k) {
        const auto dim = static_cast<int64_t>(k) + 2;
        const int64_t in = input[k + 2].expect_int();
        std::vector<int64_t> shape = result.sizes().vec();
        shape[k + 2] = in;
        result = at::zeros(shape, grad.options()).index_add_(dim, nearest(grad, in, grad.size(dim), scales[k]), result);
    }
    return result;
}

at::Tensor exact1d(const at::Tensor& x, c10::SymIntArrayRef size, Scale scale) { return stretch<1>(x, size, {scale}); }
at::Tensor exact2d(const at::Tensor& x, c10::SymIntArrayRef size, Scale h, Scale w) {
    return stretch<2>(x, size, {h, w});
}
at::Tensor exact3d(const at::Tensor& x, c10::SymIntArrayRef size, Scale d, Scale h, Scale w) {
    return stretch<3>(x, size, {d, h, w});
}

at::Tensor exact1d_backward(const at::Tensor& grad, c10::SymIntArrayRef, c10::SymIntArrayRef input, Scale scale) {
    return stretch_backward<1>(grad, input, {scale});
}
at::Tensor exact2d_backward(const at::Tensor& grad, c10::SymIntArrayRef, c10::SymIntArrayRef input, Scale h, Scale w) {
    return stretch_backward<2>(grad, input, {h, w});
}
at::Tensor exact3d_backward(const at::Tensor& grad, c10::SymIntArrayRef, c10::SymIntArrayRef input, Scale d, Scale h,
                            Scale w) {
    return stretch_backward<3>(grad, input, {d, h, w});
}

}  // namespace
}  // namespace derived

void derive_resampling(Derivations& d) {
    namespace ops = at::_ops;
    d.needs({"index_select", "arange.start_out", "floor", "clamp"});
    d.add<&derived::exact1d, ops::_upsample_nearest_exact1d, ops::_upsample_nearest_exact1d_out>();
    d.add<&derived::exact2d, ops::_upsample_nearest_exact2d, ops::_upsample_nearest_exact2d_out>();
    d.add<&derived::exact3d, ops::_upsample_nearest_exact3d, ops::_upsample_nearest_exact3d_out>();
    d.needs({"index_add_", "arange.start_out", "floor", "clamp"});
    d.add<&derived::exact1d_backward, ops::_upsample_nearest_exact1d_backward,
          ops::_upsample_nearest_exact1d_backward_grad_input>();
    d.add<&derived::exact2d_backward, ops::_upsample_nearest_exact2d_backward,
          ops::_upsample_nearest_exact2d_backward_grad_input>();
    d.add<&derived::exact3d_backward, ops::_upsample_nearest_exact3d_backward,
          ops::_upsample_nearest_exact3d_backward_grad_input>();
}

}  // namespace dipu
