// Optimizer steps by running averages of squares (Adadelta, RMSprop), and the clipping of gradients by their norm.
#include <diopi/diopirt.h>
#include <diopi/functions.h>

#include "core/scalar.h"
#include "core/view.h"
#include "core/workspace.h"
#include "math/math.h"
#include "reduction/vector_norm.h"
#include "space/access.h"
#include "step.h"

namespace impl::portable {

using namespace diopi::kernels;
namespace math = diopi::math;

namespace {

template <class Access>
struct AdadeltaTask {
    using C = typename Access::Compute;

    StepTensors<4> step;  // parameter, gradient, average of squares, average of squared steps
    C lr, rho, rest, eps, weight_decay;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<4> at = step.offsets(i);
        const C param = Access::template load<C>(step.tensors[0], at.at[0]);
        const C gradient = Access::template load<C>(step.tensors[1], at.at[1]) + weight_decay * param;
        const C squares = rho * Access::template load<C>(step.tensors[2], at.at[2]) + rest * gradient * gradient;
        const C moved = Access::template load<C>(step.tensors[3], at.at[3]);
        const C way = math::sqrt(moved + eps) / math::sqrt(squares + eps) * gradient;
        Access::store(step.tensors[2], at.at[2], squares);
        Access::store(step.tensors[3], at.at[3], rho * moved + rest * way * way);
        Access::store(step.tensors[0], at.at[0], param - lr * way);
    }
};

template <class Access>
struct RmspropTask {
    using C = typename Access::Compute;

    StepTensors<5> step;  // parameter, gradient, average of squares, average, momentum buffer
    C lr, alpha, rest, eps, weight_decay, momentum;
    bool centered;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<5> at = step.offsets(i);
        const C param = Access::template load<C>(step.tensors[0], at.at[0]);
        const C gradient = Access::template load<C>(step.tensors[1], at.at[1]) + weight_decay * param;
        C variance = alpha * Access::template load<C>(step.tensors[2], at.at[2]) + rest * gradient * gradient;
        Access::store(step.tensors[2], at.at[2], variance);
        if (centered) {
            const C average = alpha * Access::template load<C>(step.tensors[3], at.at[3]) + rest * gradient;
            Access::store(step.tensors[3], at.at[3], average);
            variance -= average * average;
        }
        C way = gradient / (math::sqrt(variance) + eps);
        if (momentum > C(0)) {
            way += momentum * Access::template load<C>(step.tensors[4], at.at[4]);
            Access::store(step.tensors[4], at.at[4], way);
        }
        Access::store(step.tensors[0], at.at[0], param - lr * way);
    }
};

}  // namespace

diopiError_t diopiAdadelta(Context ctx, Tensor param, ConstTensor grad, Tensor square_avg, Tensor acc_delta, float lr,
                           float rho, float eps, float weight_decay) {
    return guarded([&] {
        const TensorView tensors[4] = {required_view(param, "param"), required_view(grad, "grad"),
                                       required_view(square_avg, "square_avg"), required_view(acc_delta, "acc_delta")};
        const StepTensors<4> step(tensors);
        dispatch_access({&tensors[0], &tensors[1], &tensors[2], &tensors[3]}, [&](auto access) {
            using C = typename decltype(access)::Compute;
            for_each(ctx, step.space.numel,
                     AdadeltaTask<decltype(access)>{step, C(decimal(lr)), C(decimal(rho)), C(1.0 - decimal(rho)),
                                                    C(decimal(eps)), C(decimal(weight_decay))});
        });
    });
}

diopiError_t diopiRmsprop(Context ctx, Tensor param, ConstTensor grad, Tensor square_avg, Tensor grad_avg,
                          Tensor momentum_buf, float lr, float alpha, float eps, float weight_decay, float momentum,
                          bool centered) {
    return guarded([&] {
        const TensorView parameter = required_view(param, "param");
        const TensorView tensors[5] = {parameter, required_view(grad, "grad"), required_view(square_avg, "square_avg"),
                                       optional_state(grad_avg, parameter), optional_state(momentum_buf, parameter)};
        require(!centered || tensors[3].defined(), "centered RMSprop needs the tensor 'grad_avg'");
        require(momentum <= 0.0f || tensors[4].defined(), "momentum needs the tensor 'momentum_buf'");
        const StepTensors<5> step(tensors);
        dispatch_access({&tensors[0], &tensors[1], &tensors[2], &tensors[3], &tensors[4]}, [&](auto access) {
            using C = typename decltype(access)::Compute;
            for_each(ctx, step.space.numel,
                     RmspropTask<decltype(access)>{step, C(decimal(lr)), C(decimal(alpha)), C(1.0 - decimal(alpha)),
                                                   C(decimal(eps)), C(decimal(weight_decay)), C(decimal(momentum)),
                                                   centered});
        });
    });
}

// The norm is an argument of the host, so that the call waits for the device.
diopiError_t diopiClipGradNorm(Context ctx, double* out, Tensor* grads, int64_t num_grads, double max_norm,
                               double norm_type, bool error_if_nonfinite) {
    return guarded([&] {
        require(out != nullptr, "the number 'out' is null");
        const TensorView norms = temporary(ctx, &num_grads, 1, diopi_dtype_float64);
        for (int64_t k = 0; k < num_grads; ++k) {
            const TensorView gradient = required_view(grads[k], "grads");
            norm(ctx, selected(norms, 0, k), gradient, norm_type, all_dims(gradient.ndim));
        }
        const TensorView total = temporary(ctx, nullptr, 0, diopi_dtype_float64);
        norm(ctx, total, norms, norm_type, all_dims(1));
        check(diopi::launch::copy_to_host(stream_of(ctx), out, total.data, sizeof *out),
              "the device did not give back the norm");
        require(!error_if_nonfinite || math::isfinite(*out), "the norm of the gradients is infinite or NaN");
        const diopiScalar_t factor = float_scalar(math::min(max_norm / (*out + 1e-6), 1.0));
        for (int64_t k = 0; k < num_grads; ++k) check(::diopiMulInpScalar(ctx, grads[k], &factor));
    });
}

}  // namespace impl::portable
