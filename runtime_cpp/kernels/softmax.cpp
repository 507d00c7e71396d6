// Softmax and its logarithm along a dimension, with their gradients.
#include <diopi/diopirt.h>

#include "core/access.h"
#include "core/lines.h"
#include "core/math.h"
#include "core/strides.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class Access, bool logarithm>
struct SoftmaxTask {
    using C = typename Access::Compute;

    Lines<2> lines;  // out, input
    TensorView out;
    TensorView input;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<2> at = lines.outer.offsets(i);
        with_strides(lines.strides, [&](const auto& strides) { line(at, strides); });
    }

    template <class Strides>
    DIOPI_HD void line(const Offsets<2>& at, const Strides& strides) const {
        const auto target = [&](int64_t k) { return at.at[0] + k * strides[0]; };
        const auto element = [&](int64_t k) { return Access::template load<C>(input, at.at[1] + k * strides[1]); };
        // from the largest element on nothing overflows, whatever the inputs
        const C largest = largest_of_run<C>(lines.count, element);
        const auto power = [&](int64_t k) { return math::exp(element(k) - largest); };
        // an output that keeps all digits holds the powers meanwhile, so that each is worked out once
        constexpr bool keeps = Access::kExact && !logarithm;
        if (keeps) each([&](int64_t k) { Access::store(out, target(k), power(k)); });
        const auto kept = [&](int64_t k) { return keeps ? Access::template load<C>(out, target(k)) : power(k); };
        const C sum = static_cast<C>(sum_of_run(lines.count, kept));
        const C last = logarithm ? math::log(sum) : C(1) / sum;
        each([&](int64_t k) {
            Access::store(out, target(k), logarithm ? element(k) - largest - last : kept(k) * last);
        });
    }

    template <class Body>
    DIOPI_HD void each(const Body& body) const {
#pragma GCC ivdep
        for (int64_t k = 0; k < lines.count; ++k) body(k);
    }
};

template <class Access, bool logarithm>
struct SoftmaxBackwardTask {
    using C = typename Access::Compute;

    Lines<3> lines;  // grad_input, grad_output, output
    TensorView grad_input;
    TensorView grad_output;
    TensorView output;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<3> at = lines.outer.offsets(i);
        with_strides(lines.strides, [&](const auto& strides) { line(at, strides); });
    }

    template <class Strides>
    DIOPI_HD void line(const Offsets<3>& at, const Strides& strides) const {
        const auto gradient = [&](int64_t k) {
            return Access::template load<C>(grad_output, at.at[1] + k * strides[1]);
        };
        const auto result = [&](int64_t k) { return Access::template load<C>(output, at.at[2] + k * strides[2]); };
        const C total = static_cast<C>(sum_of_run(
            lines.count, [&](int64_t k) { return logarithm ? gradient(k) : gradient(k) * result(k); }));
#pragma GCC ivdep
        for (int64_t k = 0; k < lines.count; ++k) {
            const C value = logarithm ? gradient(k) - math::exp(result(k)) * total : result(k) * (gradient(k) - total);
            Access::store(grad_input, at.at[0] + k * strides[0], value);
        }
    }
};

template <bool logarithm>
diopiError_t softmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, int64_t dim) {
    return guarded([&] {
        const TensorView operands[2] = {required_view(out, "out"), required_view(input, "input")};
        const Lines<2> lines = lines_along(operands, dim);
        dispatch_access({&operands[0], &operands[1]}, [&](auto access) {
            for_each(ctx, lines.outer.numel, SoftmaxTask<decltype(access), logarithm>{lines, operands[0], operands[1]});
        });
    });
}

template <bool logarithm>
diopiError_t softmax_backward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                              diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return guarded([&] {
        const TensorView operands[3] = {required_view(grad_input, "grad_input"),
                                        required_view(grad_output, "grad_output"), required_view(output, "output")};
        const Lines<3> lines = lines_along(operands, dim);
        dispatch_access({&operands[0], &operands[1], &operands[2]}, [&](auto access) {
            for_each(ctx, lines.outer.numel,
                     SoftmaxBackwardTask<decltype(access), logarithm>{lines, operands[0], operands[1], operands[2]});
        });
    });
}

}  // namespace

diopiError_t diopiSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                          int64_t dim) {
    return softmax<false>(ctx, out, input, dim);
}

diopiError_t diopiLogSoftmax(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                             int64_t dim) {
    return softmax<true>(ctx, out, input, dim);
}

diopiError_t diopiSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                  diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output, int64_t dim) {
    return softmax_backward<false>(ctx, grad_input, grad_output, output, dim);
}

diopiError_t diopiLogSoftmaxBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                                     diopiConstTensorHandle_t grad_output, diopiConstTensorHandle_t output,
                                     int64_t dim) {
    return softmax_backward<true>(ctx, grad_input, grad_output, output, dim);
}

}  // namespace impl::portable
