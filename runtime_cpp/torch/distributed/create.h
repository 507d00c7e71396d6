// Making a process group's backend.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>

#include "export.h"

namespace dipu::distributed {

// The backend `dicl` over `host`, a group of the same ranks for CPU tensors whose options tell their numbers among all
// processes, and `store`; nobody else uses them.
DIPU_API c10::intrusive_ptr<c10d::Backend> create_backend(const c10::intrusive_ptr<c10d::Backend>& host,
                                                          const c10::intrusive_ptr<c10d::Store>& store,
                                                          std::chrono::milliseconds timeout);

}  // namespace dipu::distributed
