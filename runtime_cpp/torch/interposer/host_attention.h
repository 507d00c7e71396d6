// Fused attention on the CPU, which has no operator of that name: for the fallback and for what is compared with the CPU.
#pragma once

#include <ATen/core/stack.h>

namespace dipu {

// Both replace the arguments on the stack by the results, on the device of the query.
void attention_on_host(torch::jit::Stack& stack);
void attention_backward_on_host(torch::jit::Stack& stack);

}  // namespace dipu
