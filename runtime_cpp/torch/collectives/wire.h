// As what the vendor's library moves and reduces the elements of a dtype of torch.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>
#include <variant>
#include <vector>

#include "table.h"

namespace dipu::collectives {

struct Wire {
    diopiDtype_t dtype;
    int64_t per_element = 1;               // e.g. 2 for complex numbers
    bool bytes = false;                    // instead of elements
    diopiReduceOp_t op = diopiReduceSum;  // unused where nothing is reduced
    std::optional<double> factor = std::nullopt;  // of each rank's values: `op` is then of create_premul_sum
};

// The wire of a collective, or why the library does not serve it.
using Served = std::variant<Wire, const char*>;

// Without a reduction; `collective` is not one of those that reduce.
Served moved(diopiCollective_t collective, const std::vector<at::Tensor>& tensors);

// Throws c10::Error when `op` is not defined for `dtype`.
Served reduced(diopiCollective_t collective, c10::ScalarType dtype, const c10d::ReduceOp& op);

}  // namespace dipu::collectives
