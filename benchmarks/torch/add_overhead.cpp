// What a wrapper costs: functional add of two one-element float tensors over the bare C call, beside at::add on the CPU.
//
// Each figure is the least of several repeats, in nanoseconds per call. The vendor library is the one that torch_dipu finds.
#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <diopi/functions.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "initialize.h"
#include "vendor_library.h"
#include "wrapper/context.h"
#include "wrapper/control.h"

namespace {

constexpr int kRepeats = 9;
constexpr int kCalls = 200'000;

template <class Call>
double nanoseconds(Call call) {
    double least = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
        const auto start = std::chrono::steady_clock::now();
        for (int index = 0; index < kCalls; ++index) {
            call();
        }
        const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
        least = std::min(least, spent.count() / kCalls);
    }
    return least;
}

diopiConstTensorHandle_t handle_of(const at::Tensor& tensor) { return reinterpret_cast<diopiConstTensorHandle_t>(&tensor); }

void report(const char* mode, double bare, double device, double cpu) {
    std::printf("%-16s bare C call %6.1f   at::add on dipu %6.1f   at::add on the CPU %6.1f   above the call %6.1f   dipu/CPU %.2f\n",
                mode, bare, device, cpu, device - bare, device / cpu);
}

}  // namespace

int main() {
    dipu::initialize();
    const auto add = reinterpret_cast<decltype(&::diopiAdd)>(dipu::vendor_symbol("diopiAdd"));
    if (add == nullptr) {
        std::fprintf(stderr, "the vendor library has no diopiAdd\n");
        return 1;
    }
    const at::Tensor host = at::ones({1});
    const at::Tensor device = host.to(c10::kPrivateUse1);
    at::Tensor out = host.to(c10::kPrivateUse1);

    const c10::impl::DeviceGuardImplInterface& guard = *c10::impl::getDeviceGuardImpl(c10::kPrivateUse1);
    diopiContext context{guard.getStreamNativeHandle(guard.getStream(device.device())), device.device().index(), {}};
    diopiScalar_t alpha{};
    alpha.stype = diopi_dtype_int64;
    alpha.ival = 1;
    const auto bare_call = [&] {
        add(&context, reinterpret_cast<diopiTensorHandle_t>(&out), handle_of(device), handle_of(device), &alpha);
    };

    report("with autograd", nanoseconds(bare_call), nanoseconds([&] { return at::add(device, device); }),
           nanoseconds([&] { return at::add(host, host); }));
    {
        const c10::InferenceMode inference;
        report("inference mode", nanoseconds(bare_call), nanoseconds([&] { return at::add(device, device); }),
               nanoseconds([&] { return at::add(host, host); }));
    }

    // What one disabled debug feature costs: the load of an operator's control byte.
    static dipu::OperatorControl control{"none"};
    int taken = 0;
    std::printf("control byte %.2f ns\n", nanoseconds([&] { taken += dipu::intercepted(control) ? 1 : 0; }));
    return taken;
}
