// Powers of integers: ATen refuses negative exponents, the contract rounds what they give.
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// Of a negative power only that of one and minus one is not a fraction, which is zero as an integer.
at::Tensor power(const at::Tensor& base, const at::Tensor& exponent, at::ScalarType common) {
    const at::Tensor x = base.to(common);
    const at::Tensor n = exponent.to(common);
    if (!at::isIntegralType(common, true)) return at::pow(x, n);
    const at::Tensor sign = x.pow(at::remainder(n, 2));
    const at::Tensor rounded = at::where(x.abs().eq(1), sign, 0);
    return at::where(n.lt(0), rounded, at::pow(x, at::clamp_min(n, 0)));
}

at::Tensor power(const at::Tensor& base, const at::Scalar& exponent, at::ScalarType common) {
    if (at::isIntegralType(common, true) && exponent.isIntegral(true) && exponent.toLong() < 0) {
        return power(base, at::scalar_tensor(exponent, base.options().dtype(common)), common);
    }
    return at::pow(base.to(common), exponent);
}

}  // namespace

diopiError_t diopiPow(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const diopiScalar_t* exponent) {
    return guarded([&] { write(out, power(tensor(input), number(exponent), scalar_type(out))); });
}

diopiError_t diopiPowInp(diopiContextHandle_t, diopiTensorHandle_t input, const diopiScalar_t* exponent) {
    return guarded([&] { write(input, power(tensor(input), number(exponent), scalar_type(input))); });
}

diopiError_t diopiPowTensor(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            diopiConstTensorHandle_t exponent) {
    return guarded([&] { write(out, power(tensor(input), tensor(exponent), scalar_type(out))); });
}

diopiError_t diopiPowInpTensor(diopiContextHandle_t, diopiTensorHandle_t input, diopiConstTensorHandle_t exponent) {
    return guarded([&] {
        const at::Tensor base = tensor(input), n = tensor(exponent);
        write(input, power(base, n, at::result_type(base, n)));
    });
}

}  // namespace impl::torch
