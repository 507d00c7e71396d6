// The tensors that a caller gives to a fallback for its results.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <vector>

namespace dipu {

// A result on its way: what the fallback writes, and where the caller wants it.
struct FallbackOutput {
    at::Tensor written;
    at::Tensor wanted;
};

// Puts an empty tensor in the place of each output on `stack`. Nothing of an output is read, so its way to the host would
// be wasted; and some operators resize what they are given on the way, of which the caller must not be warned.
std::vector<FallbackOutput> take_outputs(const c10::OperatorHandle& op, torch::jit::Stack& stack);

// Copies the results to the caller's tensors, which are resized as any `out=` is, and returns those instead.
void give_outputs(const std::vector<FallbackOutput>& outputs, const c10::OperatorHandle& op, torch::jit::Stack& stack);

}  // namespace dipu
