// Argument checks with the names of torch.distributed's functions.
#include "tensor_lists.h"

#include <algorithm>
#include <numeric>

namespace dipu::distributed {

using Tensors = std::vector<at::Tensor>;

void check_tensors(const char* what, const Tensors& tensors) {
    TORCH_CHECK(!tensors.empty(), "dicl: ", what, " was given no tensor");
    for (const at::Tensor& tensor : tensors) {
        TORCH_CHECK(tensor.defined() && tensor.is_privateuseone(), "dicl: ", what, " takes tensors on dipu; one is on ",
                    tensor.defined() ? tensor.device().str() : "no device");
        TORCH_CHECK(
            tensor.layout() == c10::kStrided && !tensor.is_conj() && !tensor.is_neg(), "dicl: ", what,
            " takes dense tensors without a conj or neg bit; call to_dense(), resolve_conj() or resolve_neg() first");
        TORCH_CHECK(tensor.device() == tensors[0].device(), "dicl: the tensors of one ", what,
                    " lie on one device, not on ", tensors[0].device(), " and ", tensor.device());
    }
}

void check_one_dtype(const char* what, const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) {
        TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(), "dicl: the tensors of one ", what,
                    " have one dtype, not ", tensors[0].scalar_type(), " and ", tensor.scalar_type());
    }
}

void check_same_elements(const char* what, const Tensors& tensors, int ranks, const Tensors& others) {
    TORCH_CHECK(tensors.size() == others.size(), "dicl: ", what, " has ", others.size(), " tensors on one side and ",
                tensors.size(), " on the other");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const int64_t elements = tensors[i].numel() / ranks;
        TORCH_CHECK(elements == others[i].numel() && tensors[i].scalar_type() == others[i].scalar_type(),
                    "dicl: ", what, " has ", others[i].numel(), " elements of ", others[i].scalar_type(),
                    " on one side and ", elements, " of ", tensors[i].scalar_type(), " on the other");
    }
}

const at::Tensor& only(const char* what, const Tensors& tensors) {
    TORCH_CHECK(tensors.size() == 1, "dicl: ", what, " takes one tensor, not ", tensors.size());
    return tensors[0];
}

RankLists RankLists::divided(const char* what, const Tensors& tensors, int ranks, const Tensors& others) {
    const bool dense =
        std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.is_contiguous(); });
    std::vector<Tensors> lists(dense ? 0 : ranks);
    for (const at::Tensor& tensor : tensors) {
        TORCH_CHECK(tensor.numel() % ranks == 0, "dicl: ", what, " divides a tensor of ", tensor.numel(),
                    " elements among ", ranks, " ranks");
        const Tensors parts = dense ? Tensors() : split_rows(what, tensor, {}, ranks);
        for (std::size_t rank = 0; rank < lists.size(); ++rank) {
            lists[rank].push_back(parts[rank]);
        }
    }
    check_same_elements(what, tensors, ranks, others);
    return dense ? RankLists(tensors, ranks) : RankLists(std::move(lists));
}

RankLists RankLists::rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks) {
    if (splits.empty() && tensor.is_contiguous() && tensor.dim() > 0 && tensor.size(0) % ranks == 0) {
        return {{tensor}, ranks};
    }
    std::vector<Tensors> lists;
    for (at::Tensor& part : split_rows(what, tensor, splits, ranks)) {
        lists.push_back({std::move(part)});
    }
    return lists;
}

std::vector<Tensors> RankLists::lists() const {
    std::vector<Tensors> lists = lists_;
    for (const at::Tensor& tensor : whole_) {
        lists.resize(ranks_);
        const Tensors parts = tensor.view({ranks_, tensor.numel() / ranks_}).unbind(0);
        for (int rank = 0; rank < ranks_; ++rank) {
            lists[rank].push_back(parts[rank]);
        }
    }
    return lists;
}

Tensors RankLists::all() const {
    Tensors all = whole_;
    for (const Tensors& list : lists_) {
        all.insert(all.end(), list.begin(), list.end());
    }
    return all;
}

Tensors RankLists::nth(std::size_t n) const {
    if (!whole_.empty()) {
        return {whole_[n]};
    }
    Tensors tensors;
    for (const Tensors& list : lists_) {
        tensors.push_back(list[n]);
    }
    return tensors;
}

Tensors split_rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks) {
    TORCH_CHECK(tensor.dim() > 0, "dicl: ", what, " splits a tensor along its first dimension; a scalar has none");
    const int64_t rows = tensor.size(0);
    if (splits.empty()) {
        TORCH_CHECK(rows % ranks == 0, "dicl: ", what, " splits ", rows, " rows among ", ranks,
                    " ranks; give the split sizes");
        return tensor.split_with_sizes(std::vector<int64_t>(ranks, rows / ranks), 0);
    }
    const int64_t total = std::accumulate(splits.begin(), splits.end(), int64_t{0});
    TORCH_CHECK(static_cast<int>(splits.size()) == ranks && total == rows, "dicl: ", what, " was given split sizes ",
                c10::IntArrayRef(splits), ", which do not divide ", rows, " rows among ", ranks, " ranks");
    return tensor.split_with_sizes(splits, 0);
}

}  // namespace dipu::distributed
