// The device's part of a trace of torch.profiler.
#pragma once

namespace dipu {

// Nothing in a torch without kineto.
void register_kineto();

}  // namespace dipu
