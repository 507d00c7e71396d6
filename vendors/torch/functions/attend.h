// Attention by ATen's own products and softmax: what all its forms in the contract have in common.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <diopi/diopirt.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace diopi::aten {

// What a query sees. The last query stands at the last key.
struct Sight {
    bool causal = false;     // no key behind the query
    int64_t left = -1;       // how far before the query; -1 sets no bound
    int64_t right = -1;      // how far behind it
    at::Tensor slopes = {};  // one for each head: what a step of distance takes off the score; or undefined
    at::Tensor hidden = {};  // true where a key is not seen; or undefined
};

// Which weights are dropped: drawn by `generator` unless `kept` tells.
struct Dropout {
    double p = 0;
    std::optional<at::Generator> generator;
    at::Tensor kept;
};

// By the generator of a forward function, and by the same one as that function has left it.
Dropout dropping(double p, diopiGeneratorHandle_t gen);
Dropout dropping_again(double p, diopiGeneratorHandle_t gen);

struct Attention {
    at::Tensor out;     // in float for halves
    at::Tensor scores;  // -inf where hidden
    at::Tensor kept;    // undefined if nothing is dropped
};

// Of tensors (..., head, token, channel); a head of `k` and `v` serves several of `q` where `q` has more.
Attention attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale, const Sight& sight,
                 const Dropout& dropout = {});

// (..., token, head, channel) from (..., head, token, channel), and back.
inline at::Tensor heads_swapped(const at::Tensor& tensor) { return tensor.transpose(-2, -3); }

// Where the sequences of a batch begin that lie one behind the other, and at the end where the last one ends.
using Ends = std::vector<int64_t>;
Ends ends_of(diopiConstTensorHandle_t handle);
inline Ends ends_of(diopiSize_t size) { return {size.data, size.data + size.len}; }

// Of sequences one behind the other in tensors (token, head, channel), an entry for each. `dropout.kept` has the
// elements of all their `kept`, flat and one behind the other.
std::vector<Attention> attend_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Ends& ends_q,
                                     const Ends& ends_k, double scale, const Sight& sight, const Dropout& dropout = {});

// The outputs of all sequences (token, head, channel).
at::Tensor packed_out(const std::vector<Attention>& sequences);

// The elements of all `kept`, flat; undefined if nothing is dropped.
at::Tensor packed_kept(const std::vector<Attention>& sequences);

// Logarithms of the sums that each softmax divides by (sequence, head, query), -inf behind the end of a sequence.
at::Tensor padded_log_sums(const std::vector<Attention>& sequences, int64_t longest);

}  // namespace diopi::aten
