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

// Of two numbers that become a complex one.
struct Cartesian {
    template <class C>
    DIOPI_HD void apply(C&, C&) const {}
};

struct Polar {
    template <class C>
    DIOPI_HD void apply(C& magnitude, C& angle) const {
        const C real = magnitude * math::cos(angle);
        angle = magnitude * math::sin(angle);
        magnitude = real;
    }
};

// Changes complex numbers, or pairs of others: `parts` of an element of an input are one.
template <class T, int parts, class Change>
struct PairTask {
    Runs<3> runs;
    TensorView operands[3];  // out, and what has the first and the second number
    Change change;

    DIOPI_HD void operator()(int64_t row, int64_t begin, int64_t end) const {
        const Offsets<3> at = runs.outer.offsets(row);
        T* const target = operands[0].as<T>() + 2 * at[0];
        const T* const first = operands[1].as<T>() + parts * at[1];
        const T* const second = parts == 2 ? first + 1 : operands[2].as<T>() + at[2];
        with_strides(runs.stride, [&](const auto& stride) {
            DIOPI_VECTOR_LOOP
            for (int64_t k = begin; k < end; ++k) {
                auto real = cast<ComputeType<T>>(first[parts * k * stride[1]]);
                auto imaginary = cast<ComputeType<T>>(second[parts * k * stride[2]]);
                change.apply(real, imaginary);
                target[2 * k * stride[0]] = cast<T>(real);
                target[2 * k * stride[0] + 1] = cast<T>(imaginary);
            }
        });
    }
};

template <int parts, class Change>
void change_pairs(Context ctx, const TensorView& out, const TensorView& first, const TensorView& second) {
    const diopiDtype_t dtype = part(out, 0).dtype, from = parts == 2 ? out.dtype : dtype;
    const TensorView operands[3] = {out, converted(ctx, first, from), converted(ctx, second, from)};
    const Runs<3> runs = runs_of(broadcast_space<3>(out, operands, Visit::any_order));
    dispatch<Float>(dtype, [&](auto type) {
        using Task = PairTask<typename decltype(type)::type, parts, Change>;
        for_runs(stream_of(ctx), runs.outer.numel, runs.length, Task{runs, {out, operands[1], operands[2]}, {}});
    });
}

template <class Change>
void change_numbers(Context ctx, const TensorView& out, const TensorView& input) {
    require_same_sizes(out, input, "out", "input");
    if (out.dtype != input.dtype) fail_dtype(out.dtype);
    change_pairs<2, Change>(ctx, out, input, input);
}

diopiError_t copy_part(Context ctx, Tensor out, ConstTensor input, int which) {
    return guarded([&] {
        const TensorView x = required_view(input, "input"), y = required_view(out, "out");
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
        change_pairs<1, Cartesian>(ctx, required_view(out, "out"), required_view(real, "real"),
                                   required_view(imag, "imag"));
    });
}

diopiError_t diopiPolar(Context ctx, Tensor out, ConstTensor abs, ConstTensor angle) {
    return guarded([&] {
        change_pairs<1, Polar>(ctx, required_view(out, "out"), required_view(abs, "abs"),
                               required_view(angle, "angle"));
    });
}

}  // namespace impl::portable
