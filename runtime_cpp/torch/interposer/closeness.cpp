// One rounding to the result's type, and the roundings of a sum in the type that it is computed in, by its largest element.
#include "closeness.h"

#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "tolerance.h"
#include "wrapper/handles.h"

namespace dipu {
namespace {

std::optional<Precision> precision(c10::ScalarType dtype) {
    switch (diopi_dtype(c10::toRealValueType(dtype))) {
#define DIOPI_PRECISION(name, digits, exponent) \
    case diopi_dtype_##name: return precision_of(digits, exponent);
        DIOPI_FOR_EACH_FLOAT(DIOPI_PRECISION)
#undef DIOPI_PRECISION
        default: return std::nullopt;
    }
}

Tolerance schema_tolerance(const Judgement& judgement, c10::ScalarType dtype) {
    switch (c10::toRealValueType(dtype)) {
        case c10::kHalf: return judgement.f16;
        case c10::kBFloat16: return judgement.bf16;
        case c10::kFloat: return judgement.f32;
        case c10::kDouble: return judgement.f64;
        default: return {};
    }
}

std::string shown(const at::Tensor& tensor) {
    std::ostringstream text;
    text << tensor.scalar_type() << tensor.sizes() << " strides " << tensor.strides();
    return text.str();
}

// Complex numbers by their parts.
at::Tensor numbers(const at::Tensor& tensor, c10::ScalarType wide) {
    const at::Tensor plain = tensor.detach().cpu().resolve_conj().resolve_neg();
    return (plain.is_complex() ? at::view_as_real(plain) : plain).to(wide).contiguous();
}

std::vector<int64_t> unravelled(int64_t flat, at::IntArrayRef sizes) {
    std::vector<int64_t> index(sizes.size());
    for (std::size_t dim = sizes.size(); dim-- > 0;) {
        index[dim] = flat % sizes[dim];
        flat /= sizes[dim];
    }
    return index;
}

double largest(const double* values, int64_t count) {
    return std::accumulate(values, values + count, 0.0,
                           [](double most, double value) { return std::max(most, size_of(value)); });
}

std::optional<Mismatch> floats_differ(const at::Tensor& device, const at::Tensor& exact, c10::ScalarType dtype,
                                      const Judgement& judgement, double terms) {
    const Precision type = *precision(dtype);
    const Tolerance pair = schema_tolerance(judgement, dtype);
    const at::Tensor found = numbers(device, c10::kDouble);
    const at::Tensor wanted = numbers(exact, c10::kDouble);
    const auto* const a = found.const_data_ptr<double>();
    const auto* const b = wanted.const_data_ptr<double>();
    const int64_t count = wanted.numel();
    const double scale = terms > 1 ? largest(b, count) : 0;
    Mismatch worst;
    double excess = -1;
    for (int64_t i = 0; i < count; ++i) {
        if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) {
            continue;
        }
        const double allowed =
            pair.given() ? pair.absolute + pair.relative * size_of(b[i]) : bound(b[i], type, terms, scale);
        const double error = std::abs(a[i] - b[i]);
        if (error <= allowed || overflows(a[i], b[i], allowed, type)) {
            continue;
        }
        worst.wrong += 1;
        const double beyond = std::isfinite(error) ? error / allowed : std::numeric_limits<double>::infinity();
        if (beyond > excess) {
            excess = beyond;
            worst.index = unravelled(i, found.sizes());
            worst.device = a[i];
            worst.cpu = b[i];
            worst.error = error;
            worst.tolerance = allowed;
            worst.ulp = error / unit_in_last_place(b[i], type);
        }
    }
    if (worst.wrong == 0) {
        return std::nullopt;
    }
    worst.elements = count;
    worst.what = shown(device) + " differs";
    return worst;
}

std::optional<Mismatch> integers_differ(const at::Tensor& device, const at::Tensor& exact) {
    const at::Tensor found = numbers(device, c10::kLong);
    const at::Tensor wanted = numbers(exact, c10::kLong);
    const at::Tensor bad = found.ne(wanted);
    const int64_t wrong = bad.sum().item<int64_t>();
    if (wrong == 0) {
        return std::nullopt;
    }
    const int64_t first = bad.reshape({-1}).to(c10::kInt).argmax().item<int64_t>();
    Mismatch worst;
    worst.wrong = wrong;
    worst.elements = found.numel();
    worst.index = unravelled(first, found.sizes());
    worst.device = static_cast<double>(found.reshape({-1})[first].item<int64_t>());
    worst.cpu = static_cast<double>(wanted.reshape({-1})[first].item<int64_t>());
    worst.error = std::abs(worst.device - worst.cpu);
    worst.what = shown(device) + " differs";
    return worst;
}

}  // namespace

std::optional<Mismatch> mismatch(const at::Tensor& device, const at::Tensor& exact, c10::ScalarType dtype,
                                 const Judgement& judgement, double terms) {
    if (device.sizes() != exact.sizes() || device.scalar_type() != dtype) {
        Mismatch shape;
        std::ostringstream text;
        text << shown(device) << " where the CPU gives " << dtype << exact.sizes();
        shape.what = text.str();
        shape.wrong = shape.elements = device.numel();
        return shape;
    }
    if (device.numel() == 0) {
        return std::nullopt;
    }
    if (precision(dtype).has_value()) {
        return floats_differ(device, exact, dtype, judgement, terms);
    }
    return judgement.positions ? std::nullopt : integers_differ(device, exact);
}

bool is_unharmed(const at::Tensor& now, const at::Tensor& before) {
    if (now.sizes() != before.sizes() || now.scalar_type() != before.scalar_type()) {
        return false;
    }
    const at::Tensor host = now.detach().cpu().resolve_conj().resolve_neg();
    return host.eq(before).logical_or(host.ne(host).logical_and(before.ne(before))).all().item<bool>();
}

}  // namespace dipu
