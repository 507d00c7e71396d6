// Complex tensors and their parts: a complex element is two real ones side by side.
#include <diopi/diopirt.h>

#include "core/copy.h"
#include "core/index.h"
#include "core/math.h"
#include "core/runs.h"
#include "core/strides.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

diopiDtype_t part_dtype(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_complex32: return diopi_dtype_float16;
        case diopi_dtype_complex64: return diopi_dtype_float32;
        case diopi_dtype_complex128: return diopi_dtype_float64;
        default: fail_dtype(dtype);
    }
}

// The real (0) or imaginary (1) parts of a complex tensor, as a real one.
TensorView part(TensorView tensor, int which) {
    tensor.dtype = part_dtype(tensor.dtype);
    for (int d = 0; d < tensor.ndim; ++d) tensor.strides[d] *= 2;
    return shifted(tensor, which);
}

template <class T>
struct ConjugateTask {
    Runs<2> runs;  // out, input
    TensorView out;
    TensorView input;

    DIOPI_HD void operator()(int64_t row, int64_t begin, int64_t end) const {
        const Offsets<2> at = runs.outer.offsets(row);
        T* target = out.as<T>() + 2 * at.at[0];
        const T* source = input.as<T>() + 2 * at.at[1];
        with_strides(runs.stride, [&](const auto& stride) {
#pragma GCC ivdep
            for (int64_t k = begin; k < end; ++k) {
                const T imaginary = source[2 * k * stride[1] + 1];
                target[2 * k * stride[0]] = source[2 * k * stride[1]];
                target[2 * k * stride[0] + 1] = cast<T>(-cast<ComputeType<T>>(imaginary));
            }
        });
    }
};

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

diopiError_t diopiReal(Context ctx, Tensor out, ConstTensor input) {
    return copy_part(ctx, out, input, 0);
}

diopiError_t diopiImag(Context ctx, Tensor out, ConstTensor input) {
    return copy_part(ctx, out, input, 1);
}

diopiError_t diopiConj(Context ctx, Tensor out, ConstTensor input) {
    return guarded([&] {
        const TensorView x = required_view(input, "input");
        const TensorView y = required_view(out, "out");
        require_same_sizes(y, x, "out", "input");
        if (y.dtype != x.dtype) fail_dtype(y.dtype);
        const TensorView operands[2] = {y, x};
        const Runs<2> runs = runs_of(broadcast_space<2>(y, operands, Visit::any_order));
        dispatch<Float>(part_dtype(x.dtype), [&](auto type) {
            for_runs(stream_of(ctx), runs.outer.numel, runs.length,
                     ConjugateTask<typename decltype(type)::type>{runs, y, x});
        });
    });
}

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
