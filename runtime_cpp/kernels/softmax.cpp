// Softmax and its logarithm along a dimension, with their gradients.
#include <diopi/functions.h>

#include "core/lines.h"
#include "core/math.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

// The largest element and the sum of exp(x - largest): nothing overflows, whatever the inputs.
template <class T>
struct Scale {
    ComputeType<T> largest;
    ComputeType<T> sum;

    DIOPI_HD static Scale of(const T* x, int64_t count, int64_t stride) {
        using C = ComputeType<T>;
        C largest = static_cast<C>(x[0]);
        for (int64_t k = 1; k < count; ++k) largest = math::max(largest, static_cast<C>(x[k * stride]));
        double sum = 0;
        for (int64_t k = 0; k < count; ++k) sum += math::exp(static_cast<C>(x[k * stride]) - largest);
        return {largest, static_cast<C>(sum)};
    }
};

template <class T, bool logarithm>
struct SoftmaxTask {
    Lines<2> lines;  // out, input
    Output<T> out;
    const T* input;

    DIOPI_HD void operator()(int64_t i) const {
        using C = ComputeType<T>;
        const Offsets<2> at = lines.outer.offsets(i);
        const T* x = input + at.at[1];
        const Scale<T> scale = Scale<T>::of(x, lines.count, lines.strides[1]);
        const C last = logarithm ? math::log(scale.sum) : C(1) / scale.sum;
        for (int64_t k = 0; k < lines.count; ++k) {
            const C shifted = static_cast<C>(x[k * lines.strides[1]]) - scale.largest;
            out.set(at.at[0] + k * lines.strides[0], logarithm ? shifted - last : math::exp(shifted) * last);
        }
    }
};

template <class T, bool logarithm>
struct SoftmaxBackwardTask {
    Lines<3> lines;  // grad_input, grad_output, output
    Output<T> grad_input;
    TensorView grad_output;
    const T* output;

    DIOPI_HD void operator()(int64_t i) const {
        using C = ComputeType<T>;
        const Offsets<3> at = lines.outer.offsets(i);
        double sum = 0;
        for (int64_t k = 0; k < lines.count; ++k) {
            const C gradient = load_as<C>(grad_output, at.at[1] + k * lines.strides[1]);
            sum += logarithm ? gradient : gradient * static_cast<C>(output[at.at[2] + k * lines.strides[2]]);
        }
        const C total = static_cast<C>(sum);
        for (int64_t k = 0; k < lines.count; ++k) {
            const C gradient = load_as<C>(grad_output, at.at[1] + k * lines.strides[1]);
            const C y = static_cast<C>(output[at.at[2] + k * lines.strides[2]]);
            grad_input.set(at.at[0] + k * lines.strides[0], logarithm ? gradient - math::exp(y) * total : y * (gradient - total));
        }
    }
};

template <bool logarithm>
diopiError_t softmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        const Lines<2> lines = lines_along(operands, dim);
        dispatch<Float>(operands[1].dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each(ctx, lines.outer.numel, SoftmaxTask<T, logarithm>{lines, Output<T>(operands[0]), operands[1].as<T>()});
        });
    });
}

template <bool logarithm>
diopiError_t softmax_backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"), required_view(grad_output, "grad_output"), required_view(output, "output")};
        const Lines<3> lines = lines_along(operands, dim);
        require_storable(operands[1]);
        dispatch<Float>(operands[2].dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            for_each(ctx, lines.outer.numel, SoftmaxBackwardTask<T, logarithm>{lines, Output<T>(operands[0]), operands[1], operands[2].as<T>()});
        });
    });
}

}  // namespace

diopiError_t diopiSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) { return softmax<false>(ctx, out, input, dim); }

diopiError_t diopiLogSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) { return softmax<true>(ctx, out, input, dim); }

diopiError_t diopiSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return softmax_backward<false>(ctx, grad_input, grad_output, output, dim);
}

diopiError_t diopiLogSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input, diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return softmax_backward<true>(ctx, grad_input, grad_output, output, dim);
}

}  // namespace impl::portable
