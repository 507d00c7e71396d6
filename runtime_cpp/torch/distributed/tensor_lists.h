// Checks and divisions of the tensors that torch.distributed hands to a backend.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

namespace dipu::distributed {

// Throws c10::Error unless there is a tensor, and all are dense and lie on one device dipu; `what` e.g. "all_reduce".
void check_tensors(const char* what, const std::vector<at::Tensor>& tensors);

// Throws c10::Error unless all tensors have the dtype of the first.
void check_one_dtype(const char* what, const std::vector<at::Tensor>& tensors);

// Throws c10::Error unless there are as many tensors as `others`, with their dtypes and `ranks` times as many elements.
void check_same_elements(const char* what, const std::vector<at::Tensor>& tensors, int ranks,
                         const std::vector<at::Tensor>& others);

// The only tensor of a list. Throws c10::Error when there are more or none.
const at::Tensor& only(const char* what, const std::vector<at::Tensor>& tensors);

// A list of tensors for each rank; or whole tensors, of which each rank has an equal part. The parts are made when somebody
// asks for them: a view takes the host a microsecond or two, and there are as many as ranks.
class RankLists {
public:
    RankLists(std::vector<std::vector<at::Tensor>> lists) : lists_(std::move(lists)) {}
    static RankLists each(const std::vector<at::Tensor>& tensors);  // one tensor for each rank
    // Of each tensor a part for each rank, which has as many elements as the tensor of `others` in its place, and its dtype.
    // Throws c10::Error when that cannot be.
    static RankLists divided(const char* what, const std::vector<at::Tensor>& tensors, int ranks,
                             const std::vector<at::Tensor>& others);
    // The parts of `tensor` along its first dimension, as split_rows() has them.
    static RankLists rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks);

    std::vector<std::vector<at::Tensor>> lists() const;
    std::vector<at::Tensor> all() const;  // the whole tensors, or those of the first rank, the second, ...
    std::vector<at::Tensor> nth(std::size_t n) const;  // of each rank; one whole tensor, where it is one

private:
    RankLists(std::vector<at::Tensor> whole, int ranks) : whole_(std::move(whole)), ranks_(ranks) {}

    std::vector<std::vector<at::Tensor>> lists_;
    std::vector<at::Tensor> whole_;  // contiguous
    int ranks_ = 0;
};

// The parts of `tensor` along its first dimension; equal ones when `splits` is empty. Throws c10::Error when they do not
// make up the tensor.
std::vector<at::Tensor> split_rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits,
                                   int ranks);

}  // namespace dipu::distributed
