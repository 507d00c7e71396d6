// What the adaptor adds to a call of three tensors with nothing to convert: a function of the generated form beside the
// direct call of what it wraps. Both call a function that does nothing, so that the difference is the adaptor's alone.
#include <adaptor/call.h>
#include <adaptor/primitives.h>
#include <litert/litert.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "rounds.h"

namespace {

std::size_t allocations = 0;

}  // namespace

// Counts every allocation of this process's C++ code.
void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* const pointer = std::malloc(bytes)) return pointer;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes);
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace diopi::adaptor::primitives {

// A conversion here would be a mistake of the benchmark.
diopiError_t cast(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) { return diopiErrorOccurred; }
diopiError_t copy(diopiContextHandle_t, diopiConstTensorHandle_t, diopiTensorHandle_t) { return diopiErrorOccurred; }

}  // namespace diopi::adaptor::primitives

namespace {

using diopi::adaptor::CallOf;
using diopi::adaptor::Order;
using diopi::adaptor::Rule;

// ex) what droplet's matrix products have
constexpr Rule kDtypes = Rule().cast(diopi_dtype_float16, diopi_dtype_float32).cast(diopi_dtype_bfloat16, diopi_dtype_float32);
// ex) what droplet's convolutions have
constexpr Rule kOrder = kDtypes.order(4, Order::channels_last);

__attribute__((noinline)) diopiError_t direct(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t a,
                                              diopiConstTensorHandle_t b) {
    asm volatile("" : : "r"(out), "r"(a), "r"(b) : "memory");
    return diopiSuccess;
}

template <const Rule& rule>
__attribute__((noinline)) diopiError_t adapted(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t a,
                                               diopiConstTensorHandle_t b) {
    CallOf<3> call(ctx, "diopiAdd");
    const auto out_ = call.out(out, rule, "out");
    const auto a_ = call.in(a, rule, "input");
    const auto b_ = call.in(b, rule, "other");
    return call.run([&] { return direct(ctx, out_, a_, b_); });
}

// A tensor of 1 x 2 x 2 x 2 floats in channels-last order, which suits both rules.
diopiTensorHandle_t tensor() {
    const int64_t sizes[] = {1, 2, 2, 2};
    const int64_t strides[] = {8, 1, 4, 2};
    return litert_tensor_create(sizes, strides, 4, 0, 8, diopi_dtype_float32, diopi_device);
}

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s: %s\n", what, litert_last_error());
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    expect(argc == 2 && litert_load(argv[1]) == 0, "the vendor library does not load");
    const diopiContextHandle_t ctx = litert_context_create();
    const diopiTensorHandle_t out = tensor(), a = tensor(), b = tensor();
    expect(ctx != nullptr && out != nullptr && a != nullptr && b != nullptr, "there are no tensors to call with");

    const std::size_t before = allocations;
    for (int i = 0; i < 1000; ++i) {
        expect(adapted<kDtypes>(ctx, out, a, b) == diopiSuccess && adapted<kOrder>(ctx, out, a, b) == diopiSuccess, "a call failed");
    }
    std::printf("{\"allocations\": %zu}\n", allocations - before);

    std::vector<benchmarks::Variant> variants;
    variants.push_back(benchmarks::variant("direct call", [=] { direct(ctx, out, a, b); }));
    variants.push_back(benchmarks::variant("adaptor, dtype rules", [=] { adapted<kDtypes>(ctx, out, a, b); }));
    variants.push_back(benchmarks::variant("adaptor, dtype and layout rules", [=] { adapted<kOrder>(ctx, out, a, b); }));
    benchmarks::report(std::move(variants), "", 21, 200'000);
    return 0;
}
