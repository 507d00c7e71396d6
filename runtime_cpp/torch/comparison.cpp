// The comparison of device and CPU results, and its report.
#include "comparison.h"

#include <ATen/core/List.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cstdio>
#include <map>
#include <mutex>

#include "interposer.h"
#include "settings.h"

namespace dipu {
namespace {

struct Report {
    std::mutex mutex;
    std::map<std::string, Comparison> rows;
    bool raises = settings().compare_raises;
};

Report& report() {
    static Report& value = *new Report;
    return value;
}

at::Tensor cpu_copy(const at::Tensor& tensor) {
    return tensor.defined() && tensor.is_privateuseone() ? tensor.detach().to(c10::kCPU) : tensor;
}

c10::IValue cpu_value(const c10::IValue& value) {
    if (value.isTensor()) {
        // An in-place operator must not write the caller's CPU tensors a second time.
        const at::Tensor& tensor = value.toTensor();
        return tensor.defined() && tensor.is_cpu() ? tensor.detach().clone() : cpu_copy(tensor);
    }
    if (value.isTensorList()) {
        c10::List<at::Tensor> copies;
        for (const at::Tensor& tensor : value.toTensorVector()) {
            copies.push_back(cpu_copy(tensor));
        }
        return copies;
    }
    if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> copies;
        for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
            copies.push_back(tensor.has_value() ? std::optional<at::Tensor>(cpu_copy(*tensor)) : std::nullopt);
        }
        return copies;
    }
    if (value.isDevice() && value.toDevice().is_privateuseone()) {
        return c10::Device(c10::kCPU);
    }
    return value;
}

struct Tolerance {
    double relative;
    double absolute;
};

Tolerance tolerance(c10::ScalarType dtype) {
    switch (dtype) {
        case c10::kDouble:
        case c10::kComplexDouble:
            return {1e-7, 1e-9};
        case c10::kHalf:
            return {1e-2, 1e-3};
        case c10::kBFloat16:
            return {2e-2, 1e-2};
        default:
            return {1e-4, 1e-5};
    }
}

// The largest absolute difference where it is beyond tolerance; 0 when all agree; infinity for another shape or dtype.
double difference(const at::Tensor& device, const at::Tensor& cpu) {
    if (device.sizes() != cpu.sizes() || device.scalar_type() != cpu.scalar_type()) {
        return std::numeric_limits<double>::infinity();
    }
    if (cpu.numel() == 0) {
        return 0;
    }
    const c10::ScalarType wide = cpu.is_complex() ? c10::kComplexDouble : c10::kDouble;
    const at::Tensor a = device.detach().cpu().to(wide);
    const at::Tensor b = cpu.detach().to(wide);
    const Tolerance t = tolerance(cpu.scalar_type());
    // Equal infinities and NaN on both sides agree.
    const at::Tensor agree = a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b)));
    const at::Tensor distance = a.sub(b).abs();
    const at::Tensor bad = distance.le(b.abs().mul(t.relative).add(t.absolute)).logical_or(agree).logical_not();
    if (!bad.any().item().toBool()) {
        return 0;
    }
    return at::where(bad, distance, at::zeros_like(distance)).max().item().toDouble();
}

double difference_of_values(const c10::IValue& device, const c10::IValue& cpu) {
    if (device.isTensor() && cpu.isTensor()) {
        return device.toTensor().defined() && cpu.toTensor().defined() ? difference(device.toTensor(), cpu.toTensor()) : 0;
    }
    if (device.isTensorList() && cpu.isTensorList()) {
        const auto a = device.toTensorVector();
        const auto b = cpu.toTensorVector();
        double largest = 0;
        for (std::size_t index = 0; index < std::min(a.size(), b.size()); ++index) {
            largest = std::max(largest, difference(a[index], b[index]));
        }
        return largest;
    }
    return 0;
}

void count(const std::string& name, double largest) {
    Report& r = report();
    bool raises = false;
    {
        const std::lock_guard<std::mutex> lock(r.mutex);
        Comparison& row = r.rows.try_emplace(name, Comparison{name, 0, 0, 0}).first->second;
        row.runs += 1;
        row.differences += largest > 0 ? 1 : 0;
        row.largest = std::max(row.largest, largest);
        raises = r.raises;
    }
    if (largest > 0) {
        TORCH_CHECK(!raises, name, " differs from the CPU by up to ", largest);
        std::fprintf(stderr, "dipu: %s differs from the CPU by up to %g\n", name.c_str(), largest);
    }
}

}  // namespace

torch::jit::Stack on_cpu(const torch::jit::Stack& arguments) {
    torch::jit::Stack copies;
    for (const c10::IValue& value : arguments) {
        copies.push_back(cpu_value(value));
    }
    return copies;
}

void compare_with_cpu(const c10::OperatorHandle& op, const std::string& name, const torch::jit::Stack& arguments,
                      const torch::jit::Stack& results, torch::jit::Stack reference) {
    const torch::jit::Stack cpu_arguments = reference;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &reference);
    double largest = 0;
    const std::size_t returns = op.schema().returns().size();
    for (std::size_t index = 0; index < returns; ++index) {
        largest = std::max(largest, difference_of_values(results[results.size() - returns + index],
                                                         reference[reference.size() - returns + index]));
    }
    for (std::size_t index = 0; index < arguments.size(); ++index) {
        const c10::AliasInfo* const alias = op.schema().arguments()[index].alias_info();
        if (alias != nullptr && alias->isWrite()) {
            largest = std::max(largest, difference_of_values(arguments[index], cpu_arguments[index]));
        }
    }
    count(name, largest);
}

std::vector<Comparison> comparison_report() {
    const std::lock_guard<std::mutex> lock(report().mutex);
    std::vector<Comparison> rows;
    for (const auto& [name, row] : report().rows) {
        rows.push_back(row);
    }
    return rows;
}

void reset_comparisons() {
    const std::lock_guard<std::mutex> lock(report().mutex);
    report().rows.clear();
}

void set_comparison_raises(bool raises) {
    const std::lock_guard<std::mutex> lock(report().mutex);
    report().raises = raises;
}

}  // namespace dipu
