// Lines: tensors of one shape as lines along one dimension, for kernels that work on a line at a time.
#pragma once

#include "core/team.h"
#include "core/view.h"
#include "index.h"

namespace diopi::kernels {

template <int N>
struct Lines {
    Space<N> outer;  // one position per line, in row-major order of the other dimensions
    int64_t count;   // elements of a line
    int64_t strides[N];
};

// How many threads could work on one line; `operand` is the one that is read most.
template <int N>
int64_t team_work(const Lines<N>& lines, int operand) {
    const bool beside = lines.outer.inner_stride(operand) == 1 && lines.outer.inner_size() >= kNeighbours;
    return lines.strides[operand] != 1 && beside ? kScatteredWork : lines.count;
}

// A 0-d tensor is one line of one element. Tensors without elements give no lines, or those that are `empty`.
template <int N>
Lines<N> lines_along(const TensorView (&operands)[N], int64_t dim, bool empty = false) {
    const TensorView& first = operands[0];
    const int at = normalized_dim(dim, first.ndim);
    Lines<N> lines;
    lines.count = first.ndim == 0 ? 1 : first.sizes[at];
    TensorView others[N];
    for (int n = 0; n < N; ++n) {
        require(operands[n].same_sizes(first), "two tensors of one line-wise operator differ in shape");
        others[n] = operands[n];
        lines.strides[n] = first.ndim == 0 ? 1 : operands[n].strides[at];
        if (first.ndim > 0) others[n].sizes[at] = 1;
        recounted(others[n]).numel *= lines.count > 0 || empty;
    }
    lines.outer = broadcast_space<N>(others[0], others);
    return lines;
}

}  // namespace diopi::kernels
