// Argument checks with the names of torch.distributed's functions.
#include "tensor_lists.h"

#include <algorithm>
#include <numeric>

namespace dipu::distributed {

using Tensors = std::vector<at::Tensor>;

namespace {

// For each rank its equal part of each tensor, whose elements `ranks` divides; of a strided one it has whole rows.
std::vector<Tensors> parts_by_rank(const char* what, const Tensors& tensors, int ranks) {
    std::vector<Tensors> lists(ranks);
    for (const at::Tensor& tensor : tensors) {
        const Tensors parts = tensor.is_contiguous() ? tensor.view({ranks, tensor.numel() / ranks}).unbind(0)
                                                     : split_rows(what, tensor, {}, ranks);
        for (int rank = 0; rank < ranks; ++rank) {
            lists[rank].push_back(parts[rank]);
        }
    }
    return lists;
}

}  // namespace

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

RankLists RankLists::each(const Tensors& tensors) {
    std::vector<Tensors> lists;
    for (const at::Tensor& tensor : tensors) {
        lists.push_back({tensor});
    }
    return lists;
}

RankLists RankLists::divided(const char* what, const Tensors& tensors, int ranks, const Tensors& others) {
    for (const at::Tensor& tensor : tensors) {
        TORCH_CHECK(tensor.numel() % ranks == 0, "dicl: ", what, " divides a tensor of ", tensor.numel(),
                    " elements among ", ranks, " ranks");
    }
    const bool dense =
        std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return tensor.is_contiguous(); });
    RankLists divided = dense ? RankLists(tensors, ranks) : RankLists(parts_by_rank(what, tensors, ranks));
    check_same_elements(what, tensors, ranks, others);
    return divided;
}

RankLists RankLists::rows(const char* what, const at::Tensor& tensor, const std::vector<int64_t>& splits, int ranks) {
    if (splits.empty() && tensor.is_contiguous() && tensor.dim() > 0 && tensor.size(0) % ranks == 0) {
        return {{tensor}, ranks};
    }
    return each(split_rows(what, tensor, splits, ranks));
}

std::vector<Tensors> RankLists::lists() const { return whole_.empty() ? lists_ : parts_by_rank("", whole_, ranks_); }

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
