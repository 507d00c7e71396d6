// Making a process group's backend.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>

#include "export.h"

namespace dipu::distributed {

// The backend `dicl` over `host`, a group of the same ranks for CPU tensors that nobody else uses.
DIPU_API c10::intrusive_ptr<c10d::Backend> create_backend(const c10::intrusive_ptr<c10d::Backend>& host,
                                                          std::chrono::milliseconds timeout);

}  // namespace dipu::distributed
