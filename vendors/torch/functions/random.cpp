// Draws for which ATen takes no generator, or no tensor to write.
#include <ATen/TensorOperators.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <diopi/functions.h>

#include "aten/call.h"

namespace impl::torch {

using namespace diopi::aten;

namespace {

// What stays of `input`, and where it stays; with a `p` of one nothing does.
std::pair<at::Tensor, at::Tensor> dropped(const at::Tensor& input, double p, bool train,
                                          const std::optional<at::Generator>& generator) {
    at::Tensor mask = at::empty_like(input, at::kBool);
    if (!train) return {input, mask.fill_(true)};
    mask.bernoulli_(1 - p, generator);
    // Not a product: an infinite element that is dropped is zero.
    return {at::where(mask, input / (p < 1 ? 1 - p : 1), at::zeros_like(input)), mask};
}

}  // namespace

diopiError_t diopiBernoulliInp(diopiContextHandle_t, diopiTensorHandle_t inout, diopiGeneratorHandle_t generator) {
    return guarded([&] { write(inout, at::bernoulli(tensor(inout), diopi::aten::generator(generator))); });
}

diopiError_t diopiDropout(diopiContextHandle_t, diopiTensorHandle_t out, diopiTensorHandle_t mask,
                          diopiConstTensorHandle_t input, double p, bool train, diopiGeneratorHandle_t generator) {
    return guarded([&] {
        const auto [kept, where] = dropped(tensor(input), p, train, diopi::aten::generator(generator));
        write(out, kept);
        write(mask, where);
    });
}

diopiError_t diopiDropoutInp(diopiContextHandle_t, diopiTensorHandle_t input, diopiTensorHandle_t mask, double p,
                             bool train, diopiGeneratorHandle_t generator) {
    return guarded([&] {
        const auto [kept, where] = dropped(tensor(input), p, train, diopi::aten::generator(generator));
        write(input, kept);
        write(mask, where);
    });
}

}  // namespace impl::torch
