// What a wrapper costs: operators on one-element tensors beside the bare C call and beside torch's CPU, and what each
// disabled feature adds to a wrapper, beside an empty loop.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <diopi/functions.h>

#include <cstdlib>

#include "initialize.h"
#include "rounds.h"
#include "device/vendor_library.h"
#include "wrapper/context.h"
#include "wrapper/control.h"
#include "wrapper/status.h"

namespace {

using benchmarks::Variant;
using benchmarks::variant;

constexpr long kCalls = 20'000;
constexpr long kChecks = 1'000'000;

template <class Function>
Function* symbol(const char* name, Function*) {
    auto* const found = reinterpret_cast<Function*>(dipu::vendor_symbol(name));
    TORCH_CHECK(found != nullptr, "the vendor library has no ", name);
    return found;
}

diopiTensorHandle_t written(const at::Tensor& tensor) {
    return reinterpret_cast<diopiTensorHandle_t>(const_cast<at::Tensor*>(&tensor));
}

diopiConstTensorHandle_t read(const at::Tensor& tensor) { return reinterpret_cast<diopiConstTensorHandle_t>(&tensor); }

diopiStreamHandle_t stream_of(c10::Device device) {
    const c10::impl::DeviceGuardImplInterface& guard = *c10::impl::getDeviceGuardImpl(c10::kPrivateUse1);
    return guard.getStreamNativeHandle(guard.getStream(device));
}

// What the variants call with; every tensor has one float.
struct Operands {
    at::Tensor host = at::ones({1});
    at::Tensor host_other = at::ones({1});
    at::Tensor host_out = at::ones({1});
    at::Tensor device = host.to(c10::kPrivateUse1);
    at::Tensor device_other = host.to(c10::kPrivateUse1);
    at::Tensor device_out = host.to(c10::kPrivateUse1);
    at::Tensor device_bool = device.eq(device_other);
    diopiContext context{stream_of(device.device()), device.device().index()};
    diopiScalar_t one{diopi_dtype_int64, {1}};
};

std::vector<Variant> operators(Operands& o, const std::string& mode) {
    auto* const add = symbol("diopiAdd", &::diopiAdd);
    auto* const mul = symbol("diopiMul", &::diopiMul);
    std::vector<Variant> variants;
    const auto bare_add = [&o, add] {
        add(&o.context, written(o.device_out), read(o.device), read(o.device_other), &o.one);
    };
    variants.push_back(variant("diopiAdd, bare C call" + mode, bare_add));
    variants.push_back(variant("at::add on dipu" + mode, [&o] { at::add(o.device, o.device_other); }));
    variants.push_back(variant("at::add on the CPU" + mode, [&o] { at::add(o.host, o.host_other); }));
    variants.push_back(
        variant("at::add_out on dipu" + mode, [&o] { at::add_out(o.device_out, o.device, o.device_other); }));
    variants.push_back(
        variant("at::add_out on the CPU" + mode, [&o] { at::add_out(o.host_out, o.host, o.host_other); }));
    variants.push_back(variant("add_ on dipu" + mode, [&o] { o.device_out.add_(o.device_other); }));
    variants.push_back(variant("add_ on the CPU" + mode, [&o] { o.host_out.add_(o.host_other); }));
    const auto bare_mul = [&o, mul] { mul(&o.context, written(o.device_out), read(o.device), read(o.device_other)); };
    variants.push_back(variant("diopiMul, bare C call" + mode, bare_mul));
    variants.push_back(variant("at::mul on dipu" + mode, [&o] { at::mul(o.device, o.device_other); }));
    variants.push_back(variant("at::mul on the CPU" + mode, [&o] { at::mul(o.host, o.host_other); }));
    return variants;
}

struct Unary {
    const char* function;
    at::Tensor (*call)(const at::Tensor&);
};

struct Binary {
    const char* function;
    at::Tensor (*call)(const at::Tensor&, const at::Tensor&);
};

// Thirty operators of usual shapes of wrapper: structured ones, plain ones, those with a result of another dtype.
std::vector<Variant> many_operators(Operands& o) {
    static const Unary kUnary[] = {
        {"diopiAbs", [](const at::Tensor& x) { return x.abs(); }},
        {"diopiNeg", [](const at::Tensor& x) { return x.neg(); }},
        {"diopiExp", [](const at::Tensor& x) { return x.exp(); }},
        {"diopiLog", [](const at::Tensor& x) { return x.log(); }},
        {"diopiLog2", [](const at::Tensor& x) { return x.log2(); }},
        {"diopiSqrt", [](const at::Tensor& x) { return x.sqrt(); }},
        {"diopiRsqrt", [](const at::Tensor& x) { return x.rsqrt(); }},
        {"diopiSin", [](const at::Tensor& x) { return x.sin(); }},
        {"diopiCos", [](const at::Tensor& x) { return x.cos(); }},
        {"diopiTan", [](const at::Tensor& x) { return x.tan(); }},
        {"diopiTanh", [](const at::Tensor& x) { return x.tanh(); }},
        {"diopiSigmoid", [](const at::Tensor& x) { return x.sigmoid(); }},
        {"diopiRelu", [](const at::Tensor& x) { return x.relu(); }},
        {"diopiFloor", [](const at::Tensor& x) { return x.floor(); }},
        {"diopiCeil", [](const at::Tensor& x) { return x.ceil(); }},
        {"diopiErf", [](const at::Tensor& x) { return x.erf(); }},
        {"diopiSign", [](const at::Tensor& x) { return x.sign(); }},
        {"diopiAtan", [](const at::Tensor& x) { return x.atan(); }},
        {"diopiSinh", [](const at::Tensor& x) { return x.sinh(); }},
        {"diopiExpm1", [](const at::Tensor& x) { return x.expm1(); }},
        {"diopiLog1p", [](const at::Tensor& x) { return x.log1p(); }},
    };
    static const Binary kBinary[] = {
        {"diopiMul", [](const at::Tensor& x, const at::Tensor& y) { return x.mul(y); }},
        {"diopiMaximum", [](const at::Tensor& x, const at::Tensor& y) { return x.maximum(y); }},
        {"diopiMinimum", [](const at::Tensor& x, const at::Tensor& y) { return x.minimum(y); }},
        {"diopiEq", [](const at::Tensor& x, const at::Tensor& y) { return x.eq(y); }},
        {"diopiNe", [](const at::Tensor& x, const at::Tensor& y) { return x.ne(y); }},
        {"diopiLt", [](const at::Tensor& x, const at::Tensor& y) { return x.lt(y); }},
        {"diopiGt", [](const at::Tensor& x, const at::Tensor& y) { return x.gt(y); }},
        {"diopiLe", [](const at::Tensor& x, const at::Tensor& y) { return x.le(y); }},
        {"diopiGe", [](const at::Tensor& x, const at::Tensor& y) { return x.ge(y); }},
    };
    std::vector<Variant> variants;
    const auto add = [&](const std::string& name, auto bare, auto on_device, auto on_host) {
        variants.push_back(variant(name + ", bare C call, of thirty", bare));
        variants.push_back(variant(name + " on dipu, of thirty", on_device));
        variants.push_back(variant(name + " on the CPU, of thirty", on_host));
    };
    for (const Unary& op : kUnary) {
        auto* const function = symbol(op.function, &::diopiAbs);
        add(
            op.function, [&o, function] { function(&o.context, written(o.device_out), read(o.device)); },
            [&o, &op] { op.call(o.device); }, [&o, &op] { op.call(o.host); });
    }
    for (const Binary& op : kBinary) {
        auto* const function = symbol(op.function, &::diopiMul);
        const bool compares = op.call(o.host, o.host_other).scalar_type() == at::kBool;
        const at::Tensor& out = compares ? o.device_bool : o.device_out;
        add(
            op.function,
            [&o, &out, function] { function(&o.context, written(out), read(o.device), read(o.device_other)); },
            [&o, &op] { op.call(o.device, o.device_other); }, [&o, &op] { op.call(o.host, o.host_other); });
    }
    return variants;
}

// Keeps a value and the order of memory accesses from the optimizer.
template <class Value>
void keep(Value value) {
    asm volatile("" : : "r"(value) : "memory");
}

std::vector<Variant> checks() {
    static dipu::OperatorControl control{"none"};
    std::vector<Variant> variants;
    variants.push_back(variant("empty loop", [] { keep(0); }));
    variants.push_back(
        variant("control byte: dump, compare, synchronize, force_fallback", [] { keep(dipu::intercepted(control)); }));
    variants.push_back(variant("device guard", [] {
        const dipu::DeviceScope scope(0);
        keep(0);
    }));
    variants.push_back(variant("status: fallback and its counter", [] {
        diopiError_t status = diopiSuccess;
        asm volatile("" : "+r"(status));
        keep(dipu::ran(status, "none"));
    }));
    return variants;
}

}  // namespace

// Arguments as a profiler wants them: a part of the variants' names, and the number of rounds.
int main(int argc, char** argv) {
    const std::string part = argc > 1 ? argv[1] : "";
    const int rounds = argc > 2 ? std::atoi(argv[2]) : 21;
    dipu::initialize();
    Operands operands;
    benchmarks::report(operators(operands, ""), part, rounds, kCalls);
    benchmarks::report(many_operators(operands), part, rounds, kCalls / 4);
    benchmarks::report(checks(), part, rounds, kChecks);
    const c10::InferenceMode inference;
    Operands frozen;
    benchmarks::report(operators(frozen, ", inference mode"), part, rounds, kCalls);
    return 0;
}
