// Checks and divisions of the tensors that torch.distributed hands to a backend.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace dipu::distributed {

// Throws c10::Error unless there is a tensor, and all are dense and lie on one device dipu; `what` e.g. "all_reduce".
void check_tensors(const char* what, const std::vector<at::Tensor>& tensors);

// Throws c10::Error unless all tensors have the dtype of the first.
void check_one_dtype(const char* what, const std::vector<at::Tensor>& tensors);

// Throws c10::Error unless each list has as many tensors as `inputs`, with as many elements and their dtypes.
void check_same_elements(const char* what, const std::vector<std::vector<at::Tensor>>& lists,
                         const std::vector<at::Tensor>& inputs);

// The only tensor of a list. Throws c10::Error when there are more or none.
const at::Tensor& only(const char* what, const std::vector<at::Tensor>& tensors);

// For each rank its equal part of each tensor. Throws c10::Error when one cannot be divided so.
std::vector<std::vector<at::Tensor>> pieces(const char* what, const std::vector<at::Tensor>& tensors, int ranks);

// The parts of `tensor` along its first dimension; equal ones when `splits` is empty. Throws c10::Error when they do not
// make up the tensor.
std::vector<at::Tensor> split_rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                   int ranks);

}  // namespace dipu::distributed
