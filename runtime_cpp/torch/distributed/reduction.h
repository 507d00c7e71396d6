// How a reduction is computed on the host: by which of the host's operations, and in which dtype.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>

namespace dipu::distributed {

// Throws c10::Error when a reduction is not defined for a dtype.
void check_defined(c10d::ReduceOp::RedOpType op, c10::ScalarType dtype);

// The factor of ReduceOp.PREMUL_SUM.
double premultiplier(const c10d::ReduceOp& op);

class Reduction {
public:
    // Over `size` ranks. Throws c10::Error when `op` is not defined for `dtype`.
    Reduction(const c10d::ReduceOp& op, c10::ScalarType dtype, int size);

    // What the host reduces with.
    c10d::ReduceOp::RedOpType host_op() const { return host_op_; }

    // The elements in `bytes` as the host reduces them: the same memory where it can take their dtype.
    at::Tensor host_values(const at::Tensor& bytes) const;

    // Reduces the rows of a (ranks, elements) tensor to its first, which it returns.
    at::Tensor fold(const at::Tensor& rows) const;

    // Writes reduced values to `bytes`, which may be their own memory.
    void store(const at::Tensor& values, const at::Tensor& bytes) const;

private:
    c10::ScalarType dtype_;       // of real numbers: a complex one counts as two
    c10::ScalarType host_dtype_;  // e.g. Int for Short
    c10d::ReduceOp::RedOpType host_op_;
    std::optional<double> factor_;  // each rank's values are multiplied by it
    int divisor_ = 1;               // of the sum
};

}  // namespace dipu::distributed
