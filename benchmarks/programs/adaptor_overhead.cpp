// What the adaptor adds to a call: functions of the generated form beside the direct call of what they wrap, and beside an
// adaptor in the straightforward way. With nothing to convert the wrapped function does nothing, so that the difference is
// the adaptor's alone; with a million doubles to cast it is the vendor's addition in float32.
//
//   adaptor_overhead LIBRARY             a line of JSON for the allocations, then one for each variant
//   adaptor_overhead LIBRARY NAME CALLS  makes that many calls of one variant, for a counter of instructions
#include <adaptor/call.h>
#include <adaptor/primitives.h>
#include <standalone/standalone.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <tuple>

#include "rounds.h"
#include "wrapper_adaptor.h"

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

namespace {

using CastDtype = diopiError_t (*)(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t);
using Add = diopiError_t (*)(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t,
                             diopiConstTensorHandle_t, const diopiScalar_t*);

CastDtype vendor_cast = nullptr;
Add vendor_add = nullptr;

}  // namespace

namespace diopi::adaptor::primitives {

diopiError_t cast(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return vendor_cast(ctx, out, input);
}

// A change of order here would be a mistake of the benchmark.
diopiError_t copy(diopiContextHandle_t, diopiConstTensorHandle_t, diopiTensorHandle_t) { return diopiErrorOccurred; }

}  // namespace diopi::adaptor::primitives

namespace {

using diopi::adaptor::CallOf;
using diopi::adaptor::Order;
using diopi::adaptor::Rule;

constexpr auto kDtypes =
    Rule().cast(diopi_dtype_float64, diopi_dtype_float32).cast(diopi_dtype_int64, diopi_dtype_int32);
constexpr auto kOrder = kDtypes.order<4, Order::channels_last>();
constexpr auto kContiguous = kDtypes.contiguous();

const benchmarks::Wanted& wanted() {
    static const benchmarks::Wanted same = {
        {{diopi_dtype_float64, diopi_dtype_float32}, {diopi_dtype_int64, diopi_dtype_int32}}, {"NHWC"}};
    return same;
}

template <class... In>
__attribute__((noinline)) diopiError_t direct(diopiContextHandle_t, diopiTensorHandle_t out, In... inputs) {
    asm volatile("" : : "r"(out) : "memory");
    (static_cast<void>([&] { asm volatile("" : : "m"(inputs)); }()), ...);
    return diopiSuccess;
}

template <const auto& rule, class... In>
__attribute__((noinline)) diopiError_t adapted(diopiContextHandle_t ctx, diopiTensorHandle_t out, In... inputs) {
    CallOf<1 + sizeof...(In)> call(ctx, "diopiBenchmark");
    const auto out_ = call.out(out, rule, "out");
    const std::tuple<In...> inputs_{call.in(inputs, rule, "input")...};
    return call.run([&] { return std::apply([&](In... each) { return direct(ctx, out_, each...); }, inputs_); });
}

template <class... In>
__attribute__((noinline)) diopiError_t wrapped(diopiContextHandle_t ctx, diopiTensorHandle_t out, In... inputs) {
    using benchmarks::TensorWrapper;
    const TensorWrapper out_(ctx, out, wanted(), true);
    const std::array<TensorWrapper, sizeof...(In)> wrappers{
        {{ctx, const_cast<diopiTensorHandle_t>(inputs), wanted(), false}...}};
    return std::apply(
        [&](const auto&... each) { return direct(ctx, out_.handle(), static_cast<In>(each.handle())...); }, wrappers);
}

// diopiAdd on a chip without float64, as the generator writes it.
__attribute__((noinline)) diopiError_t adapted_add(diopiContextHandle_t ctx, diopiTensorHandle_t out,
                                                   diopiConstTensorHandle_t input, diopiConstTensorHandle_t other,
                                                   const diopiScalar_t* alpha) {
    CallOf<3> call(ctx, "diopiAdd");
    const auto out_ = call.out(out, kDtypes, "out");
    const auto input_ = call.in(input, kDtypes, "input");
    const auto other_ = call.in(other, kDtypes, "other");
    return call.run([&] { return vendor_add(ctx, out_, input_, other_, alpha); });
}

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s: %s\n", what, standalone_last_error());
    std::exit(1);
}

template <size_t Rank>
diopiTensorHandle_t tensor(const std::array<int64_t, Rank>& sizes, const std::array<int64_t, Rank>& strides,
                           diopiDtype_t dtype) {
    const diopiTensorHandle_t made =
        standalone_tensor_create(sizes.data(), strides.data(), Rank, 0, sizes[0] * strides[0], dtype, diopi_device);
    expect(made != nullptr, "there are no tensors to call with");
    return made;
}

diopiTensorHandle_t tensor(const std::array<int64_t, 4>& sizes, diopiDtype_t dtype) {
    return tensor<4>(sizes, {sizes[1] * sizes[2] * sizes[3], 1, sizes[3] * sizes[1], sizes[1]}, dtype);
}

using Inputs = std::array<diopiConstTensorHandle_t, 7>;

// The calls of three tensors and of eight with nothing to convert; suiting tensors have 2 x 3 x 4 x 5 floats, channels last,
// or contiguous.
std::vector<benchmarks::Variant> idle_calls(diopiContextHandle_t ctx) {
    const diopiTensorHandle_t out = tensor({2, 3, 4, 5}, diopi_dtype_float32);
    const auto row_major = [] { return tensor<4>({2, 3, 4, 5}, {60, 20, 5, 1}, diopi_dtype_float32); };
    const diopiTensorHandle_t flat_out = row_major();
    Inputs in{}, flat{};
    for (auto& each : in) each = tensor({2, 3, 4, 5}, diopi_dtype_float32);
    for (auto& each : flat) each = row_major();
    const auto [a, b, c, d, e, f, g] = in;
    const auto [h, i, j, k, l, m, n] = flat;
    std::vector<benchmarks::Variant> all;
    const auto add = [&all](const char* name, auto call) {
        expect(call() == diopiSuccess, "a call failed");
        all.push_back(benchmarks::variant(name, call));
    };
    add("3 tensors, direct", [=] { return direct(ctx, out, a, b); });
    add("3 tensors, adaptor, dtypes", [=] { return adapted<kDtypes>(ctx, out, a, b); });
    add("3 tensors, adaptor, dtypes and layout", [=] { return adapted<kOrder>(ctx, out, a, b); });
    add("3 tensors, adaptor, dtypes and contiguous", [=] { return adapted<kContiguous>(ctx, flat_out, h, i); });
    add("3 tensors, wrapper objects", [=] { return wrapped(ctx, out, a, b); });
    add("8 tensors, direct", [=] { return direct(ctx, out, a, b, c, d, e, f, g); });
    add("8 tensors, adaptor, dtypes", [=] { return adapted<kDtypes>(ctx, out, a, b, c, d, e, f, g); });
    add("8 tensors, adaptor, dtypes and layout", [=] { return adapted<kOrder>(ctx, out, a, b, c, d, e, f, g); });
    add("8 tensors, adaptor, dtypes and contiguous",
        [=] { return adapted<kContiguous>(ctx, flat_out, h, i, j, k, l, m, n); });
    add("8 tensors, wrapper objects", [=] { return wrapped(ctx, out, a, b, c, d, e, f, g); });
    return all;
}

// The addition of a million floats, one of whose inputs comes as doubles.
std::vector<benchmarks::Variant> casting_calls(diopiContextHandle_t ctx) {
    const std::array<int64_t, 4> sizes = {16, 64, 32, 32};
    const diopiTensorHandle_t out = tensor(sizes, diopi_dtype_float32), input = tensor(sizes, diopi_dtype_float32);
    const diopiTensorHandle_t wide = tensor(sizes, diopi_dtype_float64), narrow = tensor(sizes, diopi_dtype_float32);
    diopiScalar_t one{};
    one.stype = diopi_dtype_float64;
    one.fval = 1;
    const auto alone = [=] {
        expect(vendor_cast(ctx, narrow, wide) == diopiSuccess, "the cast failed");
        expect(vendor_add(ctx, out, input, narrow, &one) == diopiSuccess, "the addition failed");
        expect(standalone_context_synchronize(ctx) == 0 && standalone_context_reset(ctx) == 0, "the context failed");
    };
    const auto together = [=] {
        expect(adapted_add(ctx, out, input, wide, &one) == diopiSuccess, "the adapted addition failed");
        expect(standalone_context_synchronize(ctx) == 0 && standalone_context_reset(ctx) == 0, "the context failed");
    };
    return {benchmarks::variant("1M doubles, the cast and the call alone", alone),
            benchmarks::variant("1M doubles, adaptor", together)};
}

std::size_t allocations_of(const benchmarks::Variant& variant, long calls) {
    const std::size_t before = allocations;
    variant.run(calls);
    return allocations - before;
}

}  // namespace

int main(int argc, char** argv) {
    expect((argc == 2 || argc == 4) && standalone_load(argv[1]) == 0, "the vendor library does not load");
    vendor_cast = reinterpret_cast<CastDtype>(standalone_symbol("diopiCastDtype"));
    vendor_add = reinterpret_cast<Add>(standalone_symbol("diopiAdd"));
    expect(vendor_cast != nullptr && vendor_add != nullptr, "the vendor has no diopiCastDtype or no diopiAdd");
    const diopiContextHandle_t ctx = standalone_context_create();
    expect(ctx != nullptr, "there is no context");

    std::vector<benchmarks::Variant> idle = idle_calls(ctx);
    if (argc == 4) {
        for (const auto& each : idle) {
            if (each.name == argv[2]) each.run(std::atol(argv[3]));
        }
        return 0;
    }
    for (const auto& each : idle) {
        std::printf("{\"name\": \"%s\", \"allocations\": %zu}\n", each.name.c_str(), allocations_of(each, 1000));
    }
    benchmarks::report(std::move(idle), "", 21, 200'000);
    benchmarks::report(casting_calls(ctx), "", 21, 40, benchmarks::kWallTime);
    return 0;
}
