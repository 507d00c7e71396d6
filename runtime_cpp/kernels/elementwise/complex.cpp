// Complex tensors and their parts: a complex element is two real ones side by side.
#include <diopi/functions.h>

#include "copy/copy.h"
#include "core/view.h"
#include "math/math.h"
#include "space/index.h"
#include "space/runs.h"
#include "space/strides.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

struct Conjugate {
    int factors[2] = {1, -1};  // unknown to the compiler: then a pair is one product of vectors, without a shuffle

    template <class C>
    DIOPI_HD void apply(C& real, C& imaginary) const {
        real *= static_cast<C>(factors[0]);
        imaginary *= static_cast<C>(factors[1]);
    }
};

// The number of length one in the same direction.
struct Direction {
    template <class C>
    DIOPI_HD void apply(C& real, C& imaginary) const {
        const C longer = math::max(math::abs(real), math::abs(imaginary));
        const C a = real / longer, b = imaginary / longer, length = longer * math::sqrt(a * a + b * b);
        real = longer == C(0) ? longer : real / length;
        imaginary = longer == C(0) ? longer : imaginary / length;
    }
};

template <class T, class Change>
struct ComplexTask {
    Runs<2> runs;  // out, input
    TensorView out;
    TensorView input;
    Change change;

    DIOPI_HD void operator()(int64_t row, int64_t begin, int64_t end) const {
        const Offsets<2> at = runs.outer.offsets(row);
        T* target = out.as<T>() + 2 * at.at[0];
        const T* source = input.as<T>() + 2 * at.at[1];
        with_strides(runs.stride, [&](const auto& stride) {
            DIOPI_VECTOR_LOOP
            for (int64_t k = begin; k < end; ++k) {
                auto real = cast<ComputeType<T>>(source[2 * k * stride[1]]);
                auto imaginary = cast<ComputeType<T>>(source[2 * k * stride[1] + 1]);
                change.apply(real, imaginary);
                target[2 * k * stride[0]] = cast<T>(real);
                target[2 * k * stride[0] + 1] = cast<T>(imaginary);
            }
        });
    }
};

template <class Change>
void change_numbers(Context ctx, const TensorView& out, const TensorView& input) {
    require_same_sizes(out, input, "out", "input");
    if (out.dtype != input.dtype) fail_dtype(out.dtype);
    const TensorView operands[2] = {out, input};
    const Runs<2> runs = runs_of(broadcast_space<2>(out, operands, Visit::any_order));
    dispatch<Float>(part(input, 0).dtype, [&](auto type) {
        using Task = ComplexTask<typename decltype(type)::type, Change>;
        for_runs(stream_of(ctx), runs.outer.numel, runs.length, Task{runs, out, input, {}});
    });
}

template <class T>
struct PolarTask {
    Space<4> space;  // real, imaginary, magnitude, angle
    TensorView operands[4];

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<4> at = space.offsets(i);
        const auto magnitude = cast<ComputeType<T>>(operands[2].as<T>()[at.at[2]]);
        const auto angle = cast<ComputeType<T>>(operands[3].as<T>()[at.at[3]]);
        operands[0].as<T>()[at.at[0]] = cast<T>(magnitude * math::cos(angle));
        operands[1].as<T>()[at.at[1]] = cast<T>(magnitude * math::sin(angle));
    }
};

diopiError_t copy_part(Context ctx, Tensor out, ConstTensor input, int which) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        require_same_sizes(y, x, "out", "input");
        copy_elements(ctx, y, part(x, which));
    });
}

}  // namespace

diopiError_t diopiReal(Context ctx, Tensor out, ConstTensor input) { return copy_part(ctx, out, input, 0); }

diopiError_t diopiImag(Context ctx, Tensor out, ConstTensor input) { return copy_part(ctx, out, input, 1); }

diopiError_t diopiConj(Context ctx, Tensor out, ConstTensor input) {
    return guarded([&] { change_numbers<Conjugate>(ctx, required_view(out, "out"), required_view(input, "input")); });
}

diopiError_t diopiSgn(Context ctx, Tensor out, ConstTensor input) {
    return guarded([&] {
        const TensorView numbers = required_view(input, "input");
        if (!is_complex_dtype(numbers.dtype)) return passed_on(::diopiSign(ctx, out, input));
        change_numbers<Direction>(ctx, required_view(out, "out"), numbers);
    });
}

diopiError_t diopiSgnInp(Context ctx, Tensor input) { return portable::diopiSgn(ctx, input, input); }

diopiError_t diopiComplex(Context ctx, Tensor out, ConstTensor real, ConstTensor imag) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        copy_all(ctx, {{part(result, 0), required_view(real, "real")}, {part(result, 1), required_view(imag, "imag")}});
    });
}

diopiError_t diopiPolar(Context ctx, Tensor out, ConstTensor abs, ConstTensor angle) {
    return guarded([&] {
        const TensorView result = required_view(out, "out");
        const TensorView real = part(result, 0);
        const TensorView operands[4] = {real, part(result, 1), converted(ctx, required_view(abs, "abs"), real.dtype),
                                        converted(ctx, required_view(angle, "angle"), real.dtype)};
        const Space<4> space = broadcast_space<4>(real, operands, Visit::any_order);
        for_each_typed<Float, PolarTask>(ctx, real.dtype, result.numel, space, operands[0], operands[1], operands[2],
                                         operands[3]);
    });
}

}  // namespace impl::portable
