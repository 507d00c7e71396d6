// Padding by reflection and replication: each dimension is gathered by the places that its padded elements come from.
#include "derivations.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/reflection_pad1d_backward_ops.h>
#include <ATen/ops/reflection_pad1d_ops.h>
#include <ATen/ops/reflection_pad2d_backward_ops.h>
#include <ATen/ops/reflection_pad2d_ops.h>
#include <ATen/ops/reflection_pad3d_backward_ops.h>
#include <ATen/ops/reflection_pad3d_ops.h>
#include <ATen/ops/replication_pad1d_backward_ops.h>
#include <ATen/ops/replication_pad1d_ops.h>
#include <ATen/ops/replication_pad2d_backward_ops.h>
#include <ATen/ops/replication_pad2d_ops.h>
#include <ATen/ops/replication_pad3d_backward_ops.h>
#include <ATen/ops/replication_pad3d_ops.h>
#include <ATen/ops/zeros.h>

namespace dipu {
namespace derived {
namespace {

enum class Mode { kReflect, kReplicate };

// One dimension of `size` elements with `before` and `after` more of them; negative ones are cut off.
at::Tensor places(const at::Tensor& x, int64_t size, int64_t before, int64_t after, Mode mode) {
    const at::Tensor line = at::arange(-before, size + after, x.options().dtype(at::kLong));
    if (mode == Mode::kReplicate) {
        return line.clamp(0, size - 1);
    }
    return line.abs().sub(size - 1).abs().neg().add(size - 1);
}

// The size of a dimension, counted from the last one, behind the padding.
int64_t padded_size(const at::Tensor& x, at::IntArrayRef padding, int64_t k) {
    return x.size(-1 - k) + padding[2 * k] + padding[2 * k + 1];
}

void check(const at::Tensor& x, at::IntArrayRef padding, Mode mode) {
    const auto spatial = static_cast<int64_t>(padding.size() / 2);
    leave_to_torch_unless(x.numel() != 0 && (x.dim() == spatial + 1 || x.dim() == spatial + 2));
    for (int64_t k = 0; 2 * k < static_cast<int64_t>(padding.size()); ++k) {
        const bool shows = padding[2 * k] < x.size(-1 - k) && padding[2 * k + 1] < x.size(-1 - k);
        leave_to_torch_unless(padded_size(x, padding, k) >= 1 && (shows || mode == Mode::kReplicate));
    }
}

// Gives f(values, last), which reads and makes them with their channels innermost where x has them so; dimension `last`
// from the end is the last one that is padded.
template <class F>
at::Tensor as_it_lies(const at::Tensor& x, at::IntArrayRef padding, const at::Tensor& values, F&& f) {
    const bool batch = x.dim() == static_cast<int64_t>(padding.size() / 2) + 2;
    if (!batch || x.suggest_memory_format() == at::MemoryFormat::Contiguous) {
        return f(values, 1);
    }
    return f(values.movedim(1, -1), 2).movedim(-1, 1);
}

at::Tensor pad(const at::Tensor& x, at::IntArrayRef padding, Mode mode) {
    check(x, padding, mode);
    return as_it_lies(x, padding, x, [&](at::Tensor result, int64_t last) {
        for (int64_t k = 0; 2 * k < static_cast<int64_t>(padding.size()); ++k) {
            const at::Tensor index = places(x, x.size(-1 - k), padding[2 * k], padding[2 * k + 1], mode);
            result = result.index_select(-last - k, index);
        }
        return result;
    });
}

// What flowed to each padded element goes back to where it came from.
at::Tensor pad_backward(const at::Tensor& grad, const at::Tensor& x, at::IntArrayRef padding, Mode mode) {
    check(x, padding, mode);
    std::vector<int64_t> sizes = x.sizes().vec();
    for (int64_t k = 0; 2 * k < static_cast<int64_t>(padding.size()); ++k) {
        sizes[sizes.size() - 1 - static_cast<std::size_t>(k)] = padded_size(x, padding, k);
    }
    leave_to_torch_unless(grad.sizes() == sizes);
    return as_it_lies(x, padding, grad, [&](at::Tensor result, int64_t last) {
        for (int64_t k = 0; 2 * k < static_cast<int64_t>(padding.size()); ++k) {
            const at::Tensor index = places(x, x.size(-1 - k), padding[2 * k], padding[2 * k + 1], mode);
            const int64_t dim = result.dim() - last - k;
            std::vector<int64_t> shape = result.sizes().vec();
            shape[static_cast<std::size_t>(dim)] = x.size(-1 - k);
            result = at::zeros(shape, grad.options()).index_add_(dim, index, result);
        }
        return result;
    });
}

template <Mode mode>
at::Tensor padded(const at::Tensor& x, c10::SymIntArrayRef padding) {
    return pad(x, C10_AS_INTARRAYREF_SLOW(padding), mode);
}

template <Mode mode>
at::Tensor padded_backward(const at::Tensor& grad, const at::Tensor& x, c10::SymIntArrayRef padding) {
    return pad_backward(grad, x, C10_AS_INTARRAYREF_SLOW(padding), mode);
}

}  // namespace
}  // namespace derived

void derive_padding(Derivations& d) {
    namespace ops = at::_ops;
    constexpr auto kReflect = derived::Mode::kReflect;
    constexpr auto kReplicate = derived::Mode::kReplicate;
    d.needs({"index_select", "arange.start_out", "clamp"});
    d.add<&derived::padded<kReflect>, ops::reflection_pad1d, ops::reflection_pad1d_out, ops::reflection_pad2d,
          ops::reflection_pad2d_out, ops::reflection_pad3d, ops::reflection_pad3d_out>();
    d.add<&derived::padded<kReplicate>, ops::replication_pad1d, ops::replication_pad1d_out, ops::replication_pad2d,
          ops::replication_pad2d_out, ops::replication_pad3d, ops::replication_pad3d_out>();
    d.needs({"index_add_", "arange.start_out", "clamp"});
    d.add<&derived::padded_backward<kReflect>, ops::reflection_pad1d_backward,
          ops::reflection_pad1d_backward_grad_input, ops::reflection_pad2d_backward,
          ops::reflection_pad2d_backward_grad_input, ops::reflection_pad3d_backward,
          ops::reflection_pad3d_backward_grad_input>();
    d.add<&derived::padded_backward<kReplicate>, ops::replication_pad1d_backward,
          ops::replication_pad1d_backward_grad_input, ops::replication_pad2d_backward,
          ops::replication_pad2d_backward_grad_input, ops::replication_pad3d_backward,
          ops::replication_pad3d_backward_grad_input>();
}

}  // namespace dipu
