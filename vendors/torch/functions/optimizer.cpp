// Steps of optimizers, from the update rules that PyTorch documents, and the clipping of gradients before them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <diopi/functions.h>
#include <diopi/functions_ext.h>

#include <algorithm>
#include <cmath>

#include "aten/call.h"
#include "aten/wide.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

struct Adam {
    diopiTensorHandle_t param;
    diopiConstTensorHandle_t grad;
    diopiTensorHandle_t mean;
    diopiTensorHandle_t square;
    diopiTensorHandle_t largest;  // null without AMSGrad
    double lr;
    double beta1;
    double beta2;
    double eps;
    double decay;
    double step;
};

// Kingma and Ba, algorithm 1, with the maximum of the second moment where AMSGrad keeps one.
void move(const Adam& a, const at::Tensor& param, const at::Tensor& grad) {
    const at::Tensor mean = a.beta1 * wide(a.mean) + (1 - a.beta1) * grad;
    const at::Tensor square = a.beta2 * wide(a.square) + (1 - a.beta2) * grad * grad;
    at::Tensor second = square;
    if (a.largest != nullptr) {
        second = at::maximum(wide(a.largest), square);
        write(a.largest, second);
    }
    const at::Tensor divisor = (second / (1 - std::pow(a.beta2, a.step))).sqrt() + a.eps;
    write(a.param, param - a.lr / (1 - std::pow(a.beta1, a.step)) * mean / divisor);
    write(a.mean, mean);
    write(a.square, square);
}

// Decay as a part of the gradient.
void adam(const Adam& a) {
    const at::Tensor param = wide(a.param);
    move(a, param, wide(a.grad) + a.decay * param);
}

// Decay of the parameter itself: Loshchilov and Hutter.
void adam_w(const Adam& a, bool maximize) {
    const at::Tensor grad = wide(a.grad);
    move(a, wide(a.param) * (1 - a.lr * a.decay), maximize ? -grad : grad);
}

}  // namespace

diopiError_t diopiSgd(diopiContextHandle_t, diopiTensorHandle_t param, diopiTensorHandle_t grad,
                      diopiTensorHandle_t buf, double lr, double momentum, double dampening, double weight_decay,
                      bool nesterov) {
    return guarded([&] {
        const at::Tensor before = wide(param);
        const at::Tensor step = wide(grad) + weight_decay * before;
        at::Tensor kept = step;
        if (momentum != 0 && buf != nullptr && tensor(buf).sizes() == before.sizes()) {
            kept = momentum * wide(buf) + (1 - dampening) * step;
            write(buf, kept);
        }
        write(param, before - lr * (nesterov ? step + momentum * kept : kept));
    });
}

diopiError_t diopiAdam(diopiContextHandle_t, diopiTensorHandle_t param, diopiConstTensorHandle_t grad,
                       diopiTensorHandle_t exp_avg, diopiTensorHandle_t exp_avg_sq, diopiTensorHandle_t max_exp_avg_sq,
                       float lr, float beta1, float beta2, float eps, float weight_decay, int64_t step, bool amsgrad) {
    return guarded([&] {
        adam({param, grad, exp_avg, exp_avg_sq, amsgrad ? max_exp_avg_sq : nullptr, lr, beta1, beta2, eps, weight_decay,
              static_cast<double>(step)});
    });
}

diopiError_t diopiAdamW(diopiContextHandle_t, diopiTensorHandle_t param, diopiConstTensorHandle_t grad,
                        diopiTensorHandle_t exp_avg, diopiTensorHandle_t exp_avg_sq, diopiTensorHandle_t max_exp_avg_sq,
                        float lr, float beta1, float beta2, float eps, float weight_decay, int64_t step, bool amsgrad) {
    return guarded([&] {
        adam_w({param, grad, exp_avg, exp_avg_sq, amsgrad ? max_exp_avg_sq : nullptr, lr, beta1, beta2, eps,
                weight_decay, static_cast<double>(step)},
               false);
    });
}

diopiError_t diopiFusedAdamW(diopiContextHandle_t, diopiTensorHandle_t* params, diopiConstTensorHandle_t* grads,
                             diopiTensorHandle_t* exp_avgs, diopiTensorHandle_t* exp_avg_sqs,
                             diopiTensorHandle_t* max_exp_avg_sqs, diopiConstTensorHandle_t* state_steps, int64_t nums,
                             double lr, double beta1, double beta2, double eps, double weight_decay, bool amsgrad,
                             bool maximize) {
    return guarded([&] {
        for (int64_t i = 0; i < nums; ++i) {
            adam_w({params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], amsgrad ? max_exp_avg_sqs[i] : nullptr, lr, beta1,
                    beta2, eps, weight_decay, tensor(state_steps[i]).item<double>()},
                   maximize);
        }
    });
}

diopiError_t diopiFusedAdam(diopiContextHandle_t, diopiTensorHandle_t* params, diopiTensorHandle_t* grads,
                            diopiTensorHandle_t* exp_avgs, diopiTensorHandle_t* exp_avg_sqs,
                            diopiTensorHandle_t* max_exp_avg_sqs, diopiConstTensorHandle_t* state_steps, int64_t nums,
                            diopiConstTensorHandle_t rate, diopiConstTensorHandle_t grad_scale,
                            diopiConstTensorHandle_t found_inf, double lr, double beta1, double beta2, double eps,
                            double weight_decay, bool amsgrad, bool maximize, bool decoupled) {
    return guarded([&] {
        if (found_inf != nullptr && tensor(found_inf).item<float>() != 0) return;
        const double way = rate != nullptr ? tensor(rate).item<double>() : lr;
        for (int64_t i = 0; i < nums; ++i) {
            if (grad_scale != nullptr) write(grads[i], wide(grads[i]) / wide(grad_scale));
            const at::Tensor slope = maximize ? -wide(grads[i]) : wide(grads[i]);
            const Adam step{
                params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], amsgrad ? max_exp_avg_sqs[i] : nullptr, way,
                beta1,     beta2,    eps,         weight_decay,   tensor(state_steps[i]).item<double>()};
            const at::Tensor before = wide(params[i]);
            decoupled ? move(step, before * (1 - way * weight_decay), slope)
                      : move(step, before, slope + weight_decay * before);
        }
    });
}

diopiError_t diopiFusedSgd(diopiContextHandle_t, diopiTensorHandle_t* params, diopiTensorHandle_t* grads,
                           diopiTensorHandle_t* momentum_buffers, int64_t nums, diopiConstTensorHandle_t rate,
                           diopiConstTensorHandle_t grad_scale, diopiConstTensorHandle_t found_inf, double lr,
                           double momentum, double dampening, double weight_decay, bool nesterov, bool maximize,
                           bool is_first_step) {
    return guarded([&] {
        if (found_inf != nullptr && tensor(found_inf).item<float>() != 0) return;
        const double way = rate != nullptr ? tensor(rate).item<double>() : lr;
        for (int64_t i = 0; i < nums; ++i) {
            if (grad_scale != nullptr) write(grads[i], wide(grads[i]) / wide(grad_scale));
            const at::Tensor before = wide(params[i]);
            at::Tensor step = (maximize ? -wide(grads[i]) : wide(grads[i])) + weight_decay * before;
            if (momentum != 0) {
                const at::Tensor kept =
                    is_first_step ? step : momentum * wide(momentum_buffers[i]) + (1 - dampening) * step;
                write(momentum_buffers[i], kept);
                step = nesterov ? step + momentum * kept : kept;
            }
            write(params[i], before - way * step);
        }
    });
}

// Zeiler, algorithm 1, with a rate.
diopiError_t diopiAdadelta(diopiContextHandle_t, diopiTensorHandle_t param, diopiConstTensorHandle_t grad,
                           diopiTensorHandle_t square_avg, diopiTensorHandle_t acc_delta, float lr, float rho,
                           float eps, float weight_decay) {
    return guarded([&] {
        const double keep = rho;
        const at::Tensor before = wide(param);
        const at::Tensor slope = wide(grad) + weight_decay * before;
        const at::Tensor square = keep * wide(square_avg) + (1 - keep) * slope * slope;
        const at::Tensor moved = wide(acc_delta);
        const at::Tensor step = ((moved + eps) / (square + eps)).sqrt() * slope;
        write(square_avg, square);
        write(acc_delta, keep * moved + (1 - keep) * step * step);
        write(param, before - lr * step);
    });
}

// Graves, Generating Sequences with Recurrent Neural Networks, equations 38 to 45.
diopiError_t diopiRmsprop(diopiContextHandle_t, diopiTensorHandle_t param, diopiConstTensorHandle_t grad,
                          diopiTensorHandle_t square_avg, diopiTensorHandle_t grad_avg,
                          diopiTensorHandle_t momentum_buf, float lr, float alpha, float eps, float weight_decay,
                          float momentum, bool centered) {
    return guarded([&] {
        const double keep = alpha;
        const at::Tensor before = wide(param);
        const at::Tensor slope = wide(grad) + weight_decay * before;
        const at::Tensor square = keep * wide(square_avg) + (1 - keep) * slope * slope;
        write(square_avg, square);
        at::Tensor variance = square;
        if (centered) {
            const at::Tensor mean = keep * wide(grad_avg) + (1 - keep) * slope;
            write(grad_avg, mean);
            variance = square - mean * mean;
        }
        at::Tensor step = slope / (variance.sqrt() + eps);
        if (momentum > 0) {
            step = momentum * wide(momentum_buf) + step;
            write(momentum_buf, step);
        }
        write(param, before - lr * step);
    });
}

diopiError_t diopiClipGradNorm(diopiContextHandle_t, double* out, diopiTensorHandle_t* grads, int64_t num_grads,
                               double max_norm, double norm_type, bool error_if_nonfinite) {
    return guarded([&] {
        *out = 0;
        if (num_grads == 0) return;
        std::vector<at::Tensor> norms;
        for (int64_t i = 0; i < num_grads; ++i) {
            norms.push_back(at::linalg_vector_norm(tensor(grads[i]), norm_type, {}, false, at::kDouble));
        }
        *out = at::linalg_vector_norm(at::stack(norms), norm_type).item<double>();
        if (error_if_nonfinite && !std::isfinite(*out)) {
            throw Failure(diopiErrorOccurred, "the norm of the gradients is not finite, so they cannot be clipped");
        }
        const double factor = std::min(1.0, max_norm / (*out + 1e-6));
        for (int64_t i = 0; i < num_grads; ++i) tensor(grads[i]).mul_(factor);
    });
}

}  // namespace impl::torch
